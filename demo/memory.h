// Memory that kernels reach, and this program too, at the same addresses.
#pragma once

#include <cstddef>
#include <memory>

namespace demo {

class Memory {
public:
    virtual ~Memory() = default;
    /// Zeros, aligned to 64 bytes. Precondition: bytes > 0. Throws if there is no room.
    virtual void* take(std::size_t bytes) = 0;
    virtual void give_back(void* block) noexcept = 0;
    /// Has every block lie where kernels run, whoever touched it last, and waits for that: what is timed next moves
    /// nothing.
    virtual void settle() = 0;
    virtual std::size_t free_bytes() const = 0;
};

/// This machine's: for kernels on its CPU, where nothing has to move.
class HostMemory final : public Memory {
public:
    void* take(std::size_t bytes) override;
    void give_back(void* block) noexcept override;
    void settle() override {}
    std::size_t free_bytes() const override;
};

struct GiveBack {
    Memory* memory = nullptr;
    void operator()(void* block) const noexcept { memory->give_back(block); }
};

/// Elements of a Memory, which outlives them.
template <class T>
using Array = std::unique_ptr<T[], GiveBack>;

/// `count` zeros.
template <class T>
Array<T> take_array(Memory& memory, std::size_t count) {
    return Array<T>(static_cast<T*>(memory.take(count * sizeof(T))), GiveBack{&memory});
}

}  // namespace demo
