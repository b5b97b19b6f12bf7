// Pieces of PTX with wgmma: operands that are put into shared memory, descriptors, and lists of registers.
#pragma once

#include <string>

#include "ptx/lab.h"

namespace kvjit::ptx {

/// "{%f8, %f9, ...}"
inline std::string registers(const std::string& prefix, int first, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + prefix + std::to_string(first + i);
    return "{" + text + "}";
}

/// The first bytes of the buffer become the first of shared memory, by all threads.
inline std::string stage(u32 bytes) {
    return "mov.u32 %r1, %tid.x; mov.u32 %r2, %r1; mov.u32 %r3, %ntid.x; mov.u64 %rd3, dynamic;\n"
           "$COPY: setp.ge.u32 %p1, %r2, " +
           std::to_string(bytes / 16) +
           "; @%p1 bra $COPIED; mul.wide.u32 %rd4, %r2, 16; add.s64 %rd5, %rd0, %rd4; add.s64 %rd6, %rd3, %rd4;\n"
           "ld.global.v2.u64 {%rd7, %rd8}, [%rd5]; st.shared.v2.u64 [%rd6], {%rd7, %rd8}; add.s32 %r2, %r2, %r3;\n"
           "bra.uni $COPY;\n$COPIED:\n";
}
inline const std::string kPublish = "fence.proxy.async; bar.sync 0;\n";
inline const std::string kFence = "wgmma.fence.sync.aligned;\n";
inline const std::string kCommit = "wgmma.commit_group.sync.aligned;\n";
inline const std::string kWait = kCommit + "wgmma.wait_group.sync.aligned 0;\n";

/// A matrix descriptor: `start` from the begin of the block's shared memory, lengths in bytes, `mode` as in the ISA.
inline u64 descriptor(u64 start, u64 leading, u64 stride, u64 mode, u64 base_offset = 0) {
    return (start + kSharedBegin) >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | base_offset << 49 | mode << 62;
}

inline std::string wgmma(const std::string& type, int n) {
    return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k16.f32." + type + "." + type + " ";
}

}  // namespace kvjit::ptx
