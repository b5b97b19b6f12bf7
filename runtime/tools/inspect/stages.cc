#include "inspect/stages.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "generator/program.h"
#include "handles.h"
#include "inspect/listing.h"
#include "inspect/sass/disassembler.h"
#include "inspect/summary.h"

namespace kvjit::tool {
namespace {

/// Whose programs have a stage.
enum class Has { kAll, kCpu, kCuda };

struct Stage {
    std::string_view name;
    Has has;
    std::optional<kvjit_stage> emitted;  // nothing: made here
    std::string_view suffix, cuda_suffix;
    bool is_binary = false;
};

constexpr Stage kStages[] = {
    {"summary", Has::kAll, std::nullopt, ".summary.txt", ".summary.txt"},
    {"identity", Has::kAll, KVJIT_STAGE_IDENTITY, ".identity.txt", ".identity.txt"},
    {"source", Has::kAll, KVJIT_STAGE_SOURCE, ".cc", ".cu"},
    {"ir", Has::kCpu, KVJIT_STAGE_IR, ".ll", ""},
    {"ir-unoptimised", Has::kCpu, KVJIT_STAGE_IR_UNOPTIMISED, ".unoptimised.ll", ""},
    {"asm", Has::kAll, KVJIT_STAGE_ASM, ".s", ".ptx"},
    {"ptx", Has::kCuda, KVJIT_STAGE_ASM, "", ".ptx"},
    {"sass", Has::kCuda, std::nullopt, "", ".sass"},
    {"object", Has::kAll, KVJIT_STAGE_OBJECT, ".o", ".cubin", true},
    {"cubin", Has::kCuda, KVJIT_STAGE_OBJECT, "", ".cubin", true},
    {"log", Has::kAll, KVJIT_STAGE_LOG, ".log", ".log"},
};

/// Precondition: there is such a stage.
const Stage& find_stage(const std::string& name) {
    return *std::ranges::find(kStages, name, &Stage::name);
}

void append(void* to, const char* text, size_t size) {
    static_cast<std::string*>(to)->append(text, size);
}

Result<std::string> emit(kvjit_kernel* kernel, const ShownImage& image, kvjit_stage stage,
                         kvjit_status* status = nullptr) {
    kvjit_error error;
    kvjit_error_init(&error);
    std::string text;
    const auto emitted = kvjit_kernel_emit(kernel, image.bit, stage, append, &text, &error);
    if (status != nullptr) *status = emitted;
    if (emitted != KVJIT_OK) return fail(error_text(error));
    return text;
}

Result<std::string> assembly_of(kvjit_kernel* kernel, const ShownImage& image, AssemblyStyle style) {
    if (image.is_cuda() && (style.raw || style.lines)) {
        return fail(std::string(style.raw ? "--raw" : "--lines") +
                    " is for CPUs' assembly; of CUDA programs asm is PTX");
    }
    Result<std::string> text = emit(kernel, image, KVJIT_STAGE_ASM);
    if (!text || style.raw || image.is_cuda()) return text;
    if (!style.lines) return readable_assembly(*text, nullptr);
    const Result<std::string> source = emit(kernel, image, KVJIT_STAGE_SOURCE);
    if (!source) return source;
    const SourceLines lines = source_lines(*source);
    return readable_assembly(*text, &lines);
}

/// What a summary of CUDA's machine code takes to know of the program.
std::optional<sass::Attention> attention_of(const kvjit_spec& spec, const ShownImage& image) {
    const auto target = gen::parse_target(image.target);
    const bool attends = image.bit == KVJIT_PROGRAM_DECODE || image.bit == KVJIT_PROGRAM_PREFILL;
    if (!image.is_cuda() || !attends || !target) return std::nullopt;
    return sass::Attention{.is_decode = image.bit == KVJIT_PROGRAM_DECODE,
                           .multiplier = image.variant == "mma"     ? sass::Multiplier::kWarps
                                         : image.variant == "wgmma" ? sass::Multiplier::kWarpgroups
                                                                    : sass::Multiplier::kLanes,
                           .group = spec.group,
                           .cache = gen::cache_format(spec),
                           .max_shared_bytes = gen::max_shared_bytes(*target)};
}

/// Without a compiler a summary still has what is known. Errors: the compiler is there, and refuses the program.
Result<Summary> summary_of(const ShownKernel& kernel, const ShownImage& image) {
    const auto only = [&](bool needed, kvjit_stage stage) {
        return needed ? emit(kernel.kernel, image, stage) : Result<std::string>("");
    };
    kvjit_status status = KVJIT_OK;
    Result<std::string> object = emit(kernel.kernel, image, KVJIT_STAGE_OBJECT, &status);
    if (status == KVJIT_BAD_TARGET || status == KVJIT_COMPILE_FAILED) return fail(object.error());
    Result<std::string> listing = object && image.is_cuda() ? list_instructions(*object) : object;
    return summarise({.program = image.program,
                      .variant = image.variant,
                      .target = image.target,
                      .image = image.name,
                      .origin = image.origin,
                      .revision = image.revision,
                      .block_threads = image.block_threads,
                      .dynamic_shared_bytes = image.shared_bytes,
                      .attention = attention_of(kernel.spec, image),
                      .object = std::move(object),
                      .assembly = only(!image.is_cuda(), KVJIT_STAGE_ASM),
                      .log = only(image.is_cuda(), KVJIT_STAGE_LOG),
                      .listing = std::move(listing)});
}

/// Errors: the program has no such stage.
Result<void> check_has(const Stage& stage, const ShownImage& image) {
    const std::string name(stage.name);
    if (stage.has == Has::kCuda && !image.is_cuda()) {
        return fail("--emit is " + name + ", which code of CPUs doesn't have; it has asm and object");
    }
    if (stage.has == Has::kCpu && image.is_cuda()) {
        return fail("--emit is " + name + ", which CUDA programs don't have; they have source, ptx and sass");
    }
    return {};
}

}  // namespace

std::vector<std::string> stage_names() {
    std::vector<std::string> names;
    for (const Stage& stage : kStages) names.emplace_back(stage.name);
    return names;
}

bool is_binary_stage(const std::string& stage) {
    return find_stage(stage).is_binary;
}

std::string stage_file(const std::string& stage, const ShownImage& image) {
    const Stage& found = find_stage(stage);
    return image.program + std::string(image.is_cuda() ? found.cuda_suffix : found.suffix);
}

Result<std::string> stage_text(const std::string& name, const ShownKernel& shown, const ShownImage& image,
                               AssemblyStyle style, std::set<std::string>& told) {
    kvjit_kernel* const kernel = shown.kernel;
    const Stage& stage = find_stage(name);
    if (auto has = check_has(stage, image); !has) return fail(has.error());
    if (name == "summary") {
        const Result<Summary> summary = summary_of(shown, image);
        if (!summary) return fail(summary.error());
        return summary_text(*summary, told);
    }
    if (name == "asm") return assembly_of(kernel, image, style);
    if (stage.emitted) return emit(kernel, image, *stage.emitted);
    const Result<std::string> cubin = emit(kernel, image, KVJIT_STAGE_OBJECT);
    return cubin ? disassemble_cubin(*cubin) : cubin;
}

Result<Json> stage_of(const std::string& name, const ShownKernel& kernel, const ShownImage& image,
                      AssemblyStyle style) {
    if (name == "summary") {
        const Result<Summary> summary = summary_of(kernel, image);
        if (!summary) return fail(summary.error());
        return summary_json(*summary);
    }
    std::set<std::string> told;
    const Result<std::string> text = stage_text(name, kernel, image, style, told);
    if (!text) return fail(text.error());
    return Json(*text);
}

}  // namespace kvjit::tool
