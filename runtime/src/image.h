// A loaded program: code in memory and its entry point.
#pragma once

#include <memory>

namespace kvjit::rt {

/// Owns executable memory (never writable at the same time). Immutable, shared between kernels.
class Image {
public:
    virtual ~Image() = default;
    /// Address of the program's entry point. Valid while the image lives.
    virtual void* entry() const = 0;
};

using ImagePtr = std::shared_ptr<const Image>;

}  // namespace kvjit::rt
