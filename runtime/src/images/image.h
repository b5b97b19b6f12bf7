// A loaded program: code in memory and its entry point.
#pragma once

#include <memory>

#include "cuda/shape.h"

namespace kvjit::rt {

/// Owns executable memory, which is never writable at the same time. Immutable, shared between kernels and plans.
class Image {
public:
    /// `launch`: the program's (generator/program.h).
    explicit Image(const LaunchShape& launch) : launch_(launch) {}
    virtual ~Image() = default;
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;

    /// Address of the program's entry point. Valid while the image lives.
    virtual void* entry() const = 0;
    /// The shape of its launches. All zero for the CPU's code.
    const LaunchShape& launch() const { return launch_; }

private:
    LaunchShape launch_;
};

using ImagePtr = std::shared_ptr<const Image>;

}  // namespace kvjit::rt
