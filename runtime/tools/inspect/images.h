// Images of a kernel's programs: what is run for each, and where that is from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json.h"
#include "kvjit/kvjit.h"
#include "result.h"

namespace kvjit::tool {

/// A program's image, as kvjit_image_info has it.
struct ShownImage {
    std::uint32_t bit;
    std::string program, variant, target, name, origin, place;
    int revision;
    std::int64_t object_bytes, block_threads, shared_bytes;

    /// Whether NVRTC compiles it; emulated programs are Clang's.
    bool is_cuda() const { return target.starts_with("nvptx64"); }
};

/// The programs of a kernel that are asked for, by their bits, and how the user has said so.
struct Asked {
    std::uint32_t programs;
    std::string program, target;

    /// "--program is load; on host this op has decode, merge": what an op lacks, and has.
    std::string lacking(std::uint32_t present) const;
    /// A call's error, in which the library tells programs by bits.
    std::string failure(const kvjit_error& error) const;
};

/// Fills `images`, with those of some programs even where others fail.
Result<void> find_images(const Asked& asked, kvjit_kernel* kernel, std::vector<ShownImage>& images);

std::string images_text(const std::vector<ShownImage>& images);
Json image_json(const ShownImage& image);

}  // namespace kvjit::tool
