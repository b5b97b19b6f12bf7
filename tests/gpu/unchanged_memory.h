// Device memory before and after.
#pragma once

#include "gpu/machine.h"

namespace kvjit::test {

/// Whether `work` leaves as much free device memory as it found. Other processes use the device too, so one of three
/// attempts decides: what leaks does so each time. True where a machine can't tell; `work` still has run.
template <class Work>
bool memory_is_unchanged(const Work& work) {
    for (int attempt = 0; attempt < 3; ++attempt) {
        const auto before = machine().free_bytes();
        work();
        if (machine().free_bytes() == before) return true;
    }
    return false;
}

}  // namespace kvjit::test
