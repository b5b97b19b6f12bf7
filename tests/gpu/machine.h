// Where a test's calls run and its arrays lie: a GPU with memory of its own, or the emulator with the host's. Tests
// that need no more than this interface run on both.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace kvjit::gpu {
class Gpu;
}

namespace kvjit::test {

/// Throws std::runtime_error where the driver refuses.
class Machine {
public:
    virtual ~Machine() = default;

    /// For kvjit_target_create.
    virtual const std::string& target() const = 0;
    /// Makes the device this thread's; memory and streams want that.
    virtual void enter() const = 0;

    virtual void* allocate(std::size_t bytes) = 0;
    virtual void release(void* memory) noexcept = 0;
    /// Both return when it is done. A download does not wait for streams.
    virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
    virtual void download(void* to, const void* from, std::size_t bytes) = 0;

    /// Waits for all that runs on the device.
    virtual void finish() = 0;

    /// For kvjit_plan_options; null where there are no streams.
    virtual void* make_stream() = 0;
    virtual void release_stream(void* stream) noexcept = 0;

    /// Free memory of the device, when nothing runs there; none where it can't be told.
    virtual std::optional<std::size_t> free_bytes() = 0;
};

/// The emulator.
std::unique_ptr<Machine> make_host_machine();
/// The GPU of this ordinal. Precondition: gpu::open_driver() succeeded.
std::unique_ptr<Machine> make_gpu_machine(int ordinal);

/// What main() chose.
Machine& machine();
/// Its GPU. Precondition: it is one, as in all tests of the suite "GPU".
const gpu::Gpu& gpu_of_machine();

/// A stream that ends with its scope.
class MachineStream {
public:
    explicit MachineStream(Machine& machine) : machine_(machine), stream_(machine.make_stream()) {}
    ~MachineStream() { machine_.release_stream(stream_); }
    MachineStream(const MachineStream&) = delete;
    MachineStream& operator=(const MachineStream&) = delete;
    void* get() const { return stream_; }

private:
    Machine& machine_;
    void* stream_;
};

}  // namespace kvjit::test
