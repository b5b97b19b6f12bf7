// The device memory of a plan: the caller's, or its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/abi.h"
#include "cuda/device.h"

namespace kvjit::rt {

/// Parts of one allocation, in this order, each aligned to 64 bytes.
struct WorkspaceLayout {
    std::size_t fault_bytes = 0;     // of an abi::Fault, 0: nothing is checked on the device
    std::size_t counters_bytes = 0;  // unsigned, one for each tile of a decode or a prefill, whichever has more
    std::size_t slopes_bytes = 0;    // float32 (H)
    std::size_t lists_bytes = 0;     // int64, of a relayout
    std::size_t partials_bytes = 0;  // float32

    std::size_t counters_offset() const;
    std::size_t slopes_offset() const;
    std::size_t lists_offset() const;
    std::size_t partials_offset() const;
    std::size_t bytes() const;
};

/// Owns device memory.
class Workspace {
public:
    explicit Workspace(Device& device) : device_(device) {}
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    /// `given`: the caller's, of `given_bytes`, which queued work of `stream` may still use; null: allocates. So the
    /// caller's memory is written after that work, allocated memory at once. Zeroes fault and counters. Errors:
    /// KVJIT_BAD_ARGUMENT where `given` is too small, KVJIT_OUT_OF_MEMORY, KVJIT_CUDA_ERROR.
    gen::Result<void> take(const WorkspaceLayout& layout, void* given, std::size_t given_bytes, void* stream);
    /// Writes the layout's slopes_bytes to slopes(), in the same order.
    gen::Result<void> write_slopes(const float* slopes);
    /// Writes lists_bytes to lists() likewise.
    gen::Result<void> write_lists(const std::int64_t* lists);

    const WorkspaceLayout& layout() const { return layout_; }
    /// Null: nothing is checked on the device.
    abi::Fault* fault() const { return layout_.fault_bytes != 0 ? reinterpret_cast<abi::Fault*>(memory_) : nullptr; }
    float* slopes() const { return reinterpret_cast<float*>(memory_ + layout_.slopes_offset()); }
    std::int64_t* lists() const { return reinterpret_cast<std::int64_t*>(memory_ + layout_.lists_offset()); }
    unsigned* counters() const { return reinterpret_cast<unsigned*>(memory_ + layout_.counters_offset()); }
    float* partials() const { return reinterpret_cast<float*>(memory_ + layout_.partials_offset()); }

private:
    gen::Result<void> find_memory(void* given, std::size_t given_bytes);

    Device& device_;
    WorkspaceLayout layout_;
    StreamOrder order_ = kAtOnce;
    char* memory_ = nullptr;
    void* owned_ = nullptr;
};

}  // namespace kvjit::rt
