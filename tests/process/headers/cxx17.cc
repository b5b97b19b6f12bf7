// kvjit.hpp, and headers that need no more, as C++17.
#include <kvjit/interop/ksana.h>
#include <kvjit/blocks.hpp>
#include <kvjit/kvjit.hpp>

int main() {
    const kvjit::KernelSpec spec;
    return spec.struct_size == sizeof(kvjit_spec) ? 0 : 1;
}
