#include "cpu/host.h"

#include "cpu/cpuid.h"

namespace kvjit::rt {

const gen::Target& host_target() {
    static const gen::Target target = gen::cpu_target(features_of(read_cpu()));
    return target;
}

}  // namespace kvjit::rt
