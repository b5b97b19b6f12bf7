// A tensor twice: as a test knows it, in host memory, and as kernels see it, in the machine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "call/elements.h"
#include "gpu/machine.h"

namespace kvjit::test {

/// Row-major. Absent when it has been given no shape.
class Array {
public:
    Array() = default;
    Array(Machine& machine, int dtype, std::vector<std::int64_t> shape);
    Array(Array&& other) noexcept;
    Array& operator=(Array&& other) noexcept;
    ~Array();

    /// The host's copy; changes reach kernels by upload().
    Strided& host() { return host_; }
    const Strided& host() const { return host_; }
    std::vector<std::byte>& bytes() { return bytes_; }
    const std::vector<std::byte>& bytes() const { return bytes_; }
    /// Another array with the same host copy, not uploaded; absent of an absent one.
    Array clone() const;
    /// Integers, from the first element on.
    void set(const std::vector<std::int64_t>& values);
    void fill(std::byte value);

    void upload();
    /// What lies in the machine's memory now.
    std::vector<std::byte> download() const;
    /// Machine memory; absent of an absent array.
    kvjit_tensor view() const;
    const std::int64_t* indices() const { return static_cast<const std::int64_t*>(memory_); }

private:
    Machine* machine_ = nullptr;
    void* memory_ = nullptr;
    std::vector<std::byte> bytes_;
    Strided host_;
};

}  // namespace kvjit::test
