// GPUs by their published numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvjit::tool::sass {

/// docs/gpu_model.md says where the numbers are from.
struct Gpu {
    std::string_view name;
    std::string_view architecture;  // "sm_90a"
    int multiprocessors;
    double clock;           // Hz
    double bandwidth;       // bytes a second of its memory
    double tensor;          // float16 products and sums a second by tensor cores, float32 sums
    double product_cycles;  // of a quarter of a multiprocessor, for one m16n8k16 by mma.sync
    double float_cycles;    // of a quarter of a multiprocessor, for one float32 instruction of a warp

    /// Of the memory, for one multiprocessor.
    double bytes_a_cycle() const { return bandwidth / multiprocessors / clock; }
    /// Cycles of a quarter of a multiprocessor for one m16n8k16 at the published rate.
    double best_product_cycles() const;
    /// float32 operations a second.
    double float32() const;
};

/// Quarters of a multiprocessor, each of which issues an instruction a cycle.
inline constexpr int kQuarters = 4;

std::span<const Gpu> gpus();
/// Those that run code of the architecture's number, whatever its suffix; none: no numbers of such a GPU are known.
std::vector<Gpu> gpus_of(const std::string& architecture);

}  // namespace kvjit::tool::sass
