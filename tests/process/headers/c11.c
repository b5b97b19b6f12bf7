/* The C headers alone, as C11. */
#include <kvjit/blocks.h>
#include <kvjit/kvjit.h>

int main(void) {
    kvjit_spec spec;
    kvjit_blocks blocks;
    kvjit_spec_init(&spec);
    kvjit_blocks_init(&blocks);
    return spec.struct_size == sizeof spec && blocks.struct_size == sizeof blocks ? 0 : 1;
}
