/* kvjit.h alone, as C11. */
#include <kvjit/kvjit.h>

int main(void) {
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    return spec.struct_size == sizeof spec ? 0 : 1;
}
