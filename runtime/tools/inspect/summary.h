// An image's summary: what its code takes, and what its hot loop does.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/hot_loop.h"
#include "inspect/occupancy.h"
#include "inspect/sass/analysis.h"
#include "inspect/sass/report.h"
#include "json.h"
#include "result.h"

namespace kvjit::tool {

/// What a summary is made of. Errors, of texts that can't be had, are said in the summary.
struct SummarySource {
    std::string program, variant, target, image, origin;
    int revision = 0;
    std::int64_t block_threads = 0, dynamic_shared_bytes = 0;  // CUDA
    std::optional<sass::Attention> attention;                  // CUDA, of programs of attention
    Result<std::string> object, assembly, log, listing;        // assembly: of CPUs; log and listing: of CUDA
};

/// A CPU's code.
struct CpuSummary {
    std::int64_t frame_bytes = -1;         // of the entry point; -1: unknown
    std::int64_t deepest_frame_bytes = 0;  // the largest of the functions that it calls
    InstructionCounts counts;
    std::optional<HotLoop> hot;
};

/// A GPU's by its machine code.
struct SassSummary {
    sass::CodeFigures code;
    std::optional<sass::HotLoop> hot;
    bool is_decode = false;              // else the shares are prefill's
    std::vector<sass::GpuShare> shares;  // of attention, on the GPUs of the architecture
};

/// A GPU's by ptxas' report.
struct CudaSummary {
    int registers = -1, stack_bytes = -1, spill_store_bytes = -1, spill_load_bytes = -1;
    std::int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0, block_threads = 0;
    std::optional<Occupancy> occupancy;
};

struct Summary {
    std::string program, variant, target, image, origin;
    int revision;
    std::int64_t code_bytes = -1;
    std::optional<CpuSummary> cpu;
    std::optional<CudaSummary> cuda;
    std::optional<SassSummary> sass;
    std::vector<std::string> lacks;  // what could not be found out, and why
};

Summary summarise(const SummarySource& source);
/// `told`: reasons for what other programs' summaries lack, above this one; gets this one's.
std::string summary_text(const Summary& summary, std::set<std::string>& told);
/// The figures; what names the image is not repeated.
Json summary_json(const Summary& summary);

/// For the help: what inspecting does, and how the hot loop is found.
inline constexpr std::string_view kInspectAbout =
    "Nothing is loaded or run, so the target may be one that this machine can't run. What a bundle or the disk cache "
    "has is read there; the rest is compiled to be shown.\n\n"
    "summary of CPUs: the hot loop is the innermost loop with the most multiply-adds, weighed by their share of its "
    "instructions (with the most loads and stores of vectors where there are none), found in the compiler's assembly "
    "by its comments. Figures count instructions as they stand there, not how often they run.\n\n"
    "summary of CUDA: machine code is read by NVIDIA's nvdisasm. Attention's hot loop is the loop over tiles of keys, "
    "and figures count what a warp issues for one tile; of other programs it is the innermost loop that stores or "
    "computes and has the most accesses to global memory, counted as it stands there. predicted: what share of its "
    "memory's bandwidth (decode) or of its arithmetic (prefill) a GPU may reach by a model, and what bounds it; "
    "docs/gpu_model.md has the formula, and nothing of it is measured. With KVJIT_LINE_INFO=1, --json also has the "
    "templates' lines that the hot loop's instructions are from.";

}  // namespace kvjit::tool
