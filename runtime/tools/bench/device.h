// Where `kvjit bench` measures: the CPU, or a GPU.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kvjit/kvjit.h"
#include "machine.h"
#include "result.h"

namespace kvjit::tool {

/// Calls, one after the other. On a GPU they are under way when it returns.
using Work = std::function<Result<void>()>;

/// Work that can be timed again and again.
class TimedWork {
public:
    virtual ~TimedWork() = default;
    /// Does it once; how long that took. Errors: the work's own, or the driver's.
    virtual Result<double> seconds() = 0;
};

/// Memory for the tensors and arrays of calls, which is freed with it. Throws std::bad_alloc, or a GPU's driver's
/// refusal as std::runtime_error.
class DeviceMemory {
public:
    virtual ~DeviceMemory() = default;
    /// Zeros, from a page on.
    virtual void* allocate(std::size_t bytes) = 0;
    /// Writes into what was allocated.
    virtual void repeat(std::span<std::byte> memory, std::span<const std::byte> pattern) = 0;
    /// See Machine::place.
    virtual Place place() = 0;
};

class Device {
public:
    virtual ~Device() = default;

    /// "A processor, 2 threads".
    virtual std::string name() const = 0;
    /// What the limits are, and how times are taken: sentences in lines.
    virtual std::string notes() const = 0;
    /// So much of a cache can't come from the device's own caches again.
    virtual double bytes_beyond_cache() const = 0;
    virtual Result<std::size_t> free_bytes() const = 0;

    virtual std::unique_ptr<DeviceMemory> memory() const = 0;
    /// For calls whose tensors lie in `memory`.
    virtual Machine machine(kvjit_engine* engine, const kvjit_target* target, DeviceMemory& memory) const = 0;
    /// Precondition: `work` was done before, and outlives the result.
    virtual Result<std::unique_ptr<TimedWork>> prepare(const Work& work) const = 0;

    // What the device can do at all. Errors: the driver's.
    /// Bytes a second, of a loop that only reads memory.
    virtual Result<double> read() = 0;
    /// Floating-point operations a second, of a loop that only multiplies and adds, as kernels for queries of this type
    /// can.
    virtual Result<double> multiply_add(kvjit_dtype t1) = 0;
    /// What that loop does: "multiply-add", "tensor cores".
    virtual std::string arithmetic(kvjit_dtype t1) const = 0;
};

/// 0 threads, or more than there are: one for each usable core.
std::unique_ptr<Device> cpu_device(int threads);
/// The GPU that `target`, a legal name, runs on, and no other. Errors: there is none, or its driver refuses the loops.
Result<std::unique_ptr<Device>> gpu_device(const std::string& target);

}  // namespace kvjit::tool
