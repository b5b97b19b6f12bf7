#include "cpu/host.h"

#include "cpu/cpuid.h"
#include "environment.h"

namespace kvjit::rt {

const gen::Target& host_target() {
    static const gen::Target target =
        gen::cpu_target(gen::consistent(features_of(read_cpu()) & ~cpu_mask_of_environment()));
    return target;
}

}  // namespace kvjit::rt
