#include "inspect/summary.h"

#include <algorithm>
#include <span>

#include "command/words.h"
#include "cuda/compile_report.h"
#include "elf_view.h"

namespace kvjit::tool {
namespace {

bool is_cuda_target(const std::string& target) {
    return target.starts_with("nvptx64");
}

/// "x86-64-v4" of "x86_64-unknown-linux-gnu:x86-64-v4+f16c+...", and how many features more.
std::string short_target(const std::string& target) {
    const std::string name = target.substr(target.rfind(':') + 1);
    const auto further = std::ranges::count(name, '+');
    const std::string level = name.substr(0, name.find('+'));
    return further == 0 ? level : level + " and " + std::to_string(further) + " more features";
}

CpuSummary of_assembly(const std::string& text) {
    const std::vector<AssemblyFunction> functions = read_assembly(text);
    CpuSummary cpu;
    for (const AssemblyFunction& function : functions) {
        cpu.counts += function.counts;
        if (function.name.starts_with("kvjit_")) {
            cpu.frame_bytes = function.frame_bytes;
        } else {
            cpu.deepest_frame_bytes = std::max(cpu.deepest_frame_bytes, function.frame_bytes);
        }
    }
    HotLoop hot;
    if (find_hot_loop(functions, hot)) cpu.hot = std::move(hot);
    return cpu;
}

std::optional<CudaSummary> of_report(const SummarySource& source) {
    const std::vector<rt::EntryReport> reports = rt::parse_compile_report(*source.log);
    if (reports.empty()) return std::nullopt;
    const rt::EntryReport& report = reports.front();
    CudaSummary cuda{.registers = report.registers,
                     .stack_bytes = report.stack_bytes,
                     .spill_store_bytes = report.spill_store_bytes,
                     .spill_load_bytes = report.spill_load_bytes,
                     .static_shared_bytes = report.shared_bytes,
                     .dynamic_shared_bytes = source.dynamic_shared_bytes,
                     .block_threads = source.block_threads,
                     .occupancy = {}};
    cuda.occupancy = occupancy(short_target(source.target), {source.block_threads, report.registers,
                                                             report.shared_bytes + source.dynamic_shared_bytes});
    return cuda;
}

void add_cpu(const SummarySource& source, Summary& summary) {
    if (source.assembly) {
        summary.cpu = of_assembly(*source.assembly);
        if (!summary.cpu->hot) summary.lacks.emplace_back("hot loop: the code has no loop");
    } else {
        summary.lacks.push_back("frame, spills, hot loop: " + source.assembly.error());
    }
}

/// Of attention whose hot loop is known, on the GPUs that are.
void predict_shares(const SummarySource& source, Summary& summary) {
    const std::string architecture = short_target(source.target);
    const std::vector<sass::Gpu> gpus = sass::gpus_of(architecture);
    SassSummary& sass = *summary.sass;
    if (gpus.empty()) summary.lacks.push_back("predicted shares: no GPU of " + architecture + " is in the model");
    if (!summary.cuda || !summary.cuda->occupancy || summary.cuda->occupancy->warps == 0) {
        summary.lacks.emplace_back("predicted shares: they take the occupancy");
        return;
    }
    sass.is_decode = source.attention->is_decode;
    for (const sass::Gpu& gpu : gpus) {
        const sass::Modelled modelled{sass.is_decode, summary.cuda->occupancy->warps, sass.hot->code.pipes,
                                      *sass.hot->tile};
        sass.shares.push_back({gpu.name, predict(modelled, gpu)});
    }
}

void add_sass(const SummarySource& source, Summary& summary) {
    sass::Analysis analysis = sass::analyse(*source.listing, source.attention);
    summary.sass = {.code = std::move(analysis.code), .hot = {}, .shares = {}};
    if (!analysis.hot) {
        summary.lacks.push_back("hot loop: " + analysis.hot.error());
        return;
    }
    summary.sass->hot = *std::move(analysis.hot);
    if (summary.sass->hot->tile) predict_shares(source, summary);
}

void add_cuda(const SummarySource& source, Summary& summary) {
    if (source.log) summary.cuda = of_report(source);
    if (!summary.cuda) {
        summary.lacks.push_back("registers, spills, occupancy: " +
                                (source.log ? std::string("the log has no report of ptxas") : source.log.error()));
    } else if (!summary.cuda->occupancy) {
        summary.lacks.push_back("occupancy: no limits of " + short_target(source.target) + " are known");
    }
    if (source.listing) {
        add_sass(source, summary);
    } else {
        summary.lacks.push_back("accesses, hot loop, predicted shares: " + source.listing.error());
    }
}

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string origin_text(const std::string& origin) {
    if (origin == "none") return "in no store";
    return origin == "compiled" ? origin : "from " + origin;
}

std::string bytes(std::int64_t count) {
    return std::to_string(count) + " bytes";
}

std::string counts_text(const InstructionCounts& counts) {
    std::string text = number_of(counts.fmas, "FMA") + ", ";
    if (counts.multiplies != 0) text += number_of(counts.multiplies, "multiply") + ", ";
    text += number_of(counts.loads, "load") + ", " + number_of(counts.stores, "store") + " of " +
            number_of(counts.instructions, "instruction");
    return text + ", " +
           (counts.vector_bytes == 0 ? "no vectors" : std::to_string(counts.vector_bytes) + "-byte vectors");
}

std::string spills_text(const InstructionCounts& counts) {
    if (counts.spills == 0 && counts.reloads == 0) return "none";
    return number_of(counts.spills, "save") + ", " + number_of(counts.reloads, "reload");
}

void add_rows(const CpuSummary& cpu, Rows& rows) {
    const std::string frame = cpu.frame_bytes < 0 ? "unknown" : bytes(cpu.frame_bytes);
    rows.emplace_back("frame", frame + "; of functions that it calls up to " + bytes(cpu.deepest_frame_bytes));
    rows.emplace_back("spills", spills_text(cpu.counts));
    rows.emplace_back("code has", counts_text(cpu.counts));
    if (!cpu.hot) return;
    const AssemblyLoop& loop = cpu.hot->loop;
    rows.emplace_back("hot loop", counts_text(loop.counts) + "; spills: " + spills_text(loop.counts));
    rows.emplace_back("", "in " + cpu.hot->function + (loop.line.empty() ? "" : ", " + loop.line));
}

void add_rows(const CudaSummary& cuda, Rows& rows) {
    rows.emplace_back("registers", std::to_string(cuda.registers) + " a thread, " + std::to_string(cuda.block_threads) +
                                       " threads a block");
    rows.emplace_back("stack", bytes(cuda.stack_bytes) + " a thread");
    rows.emplace_back("spills", bytes(cuda.spill_store_bytes) + " stored, " + bytes(cuda.spill_load_bytes) + " loaded");
    rows.emplace_back("shared", bytes(cuda.static_shared_bytes) + " static, " + bytes(cuda.dynamic_shared_bytes) +
                                    " dynamic a block");
    if (!cuda.occupancy) return;
    const Occupancy& occupancy = *cuda.occupancy;
    rows.emplace_back("occupancy", std::to_string(occupancy.blocks) + " blocks a multiprocessor, " +
                                       std::to_string(occupancy.warps) + " of " + std::to_string(occupancy.most_warps) +
                                       " warps; limited by " + occupancy.limit);
}

void add_rows(const SassSummary& sass, Rows& rows) {
    rows.emplace_back("code has", code_text(sass.code));
    if (!sass.hot) return;
    rows.emplace_back("hot loop", code_text(sass.hot->code));
    rows.emplace_back("", place_text(*sass.hot));
    if (sass.shares.empty()) return;
    rows.emplace_back("predicted", shares_text(sass.is_decode, sass.shares));
    rows.emplace_back("", "by a model, docs/gpu_model.md; not measured");
}

/// `lack`: what is missing, a colon, the reason.
std::string lack_text(const std::string& lack, std::set<std::string>& told) {
    const std::size_t colon = lack.find(": ");
    return told.insert(lack.substr(colon)).second ? lack : lack.substr(0, colon) + ", for the reason above";
}

Json counts_json(const InstructionCounts& counts) {
    return {{"instructions", counts.instructions},
            {"fmas", counts.fmas},
            {"multiplies", counts.multiplies},
            {"loads", counts.loads},
            {"stores", counts.stores},
            {"spills", counts.spills},
            {"reloads", counts.reloads},
            {"vector_bytes", counts.vector_bytes}};
}

Json cpu_json(const CpuSummary& cpu) {
    Json json = {{"frame_bytes", cpu.frame_bytes < 0 ? Json() : Json(cpu.frame_bytes)},
                 {"deepest_called_frame_bytes", cpu.deepest_frame_bytes},
                 {"code", counts_json(cpu.counts)}};
    if (!cpu.hot) return json;
    Json hot = {{"function", cpu.hot->function}, {"line", cpu.hot->loop.line}, {"depth", cpu.hot->loop.depth}};
    hot.update(counts_json(cpu.hot->loop.counts));
    json["hot_loop"] = std::move(hot);
    return json;
}

Json cuda_json(const CudaSummary& cuda) {
    Json json = {{"registers", cuda.registers},
                 {"stack_bytes", cuda.stack_bytes},
                 {"spill_store_bytes", cuda.spill_store_bytes},
                 {"spill_load_bytes", cuda.spill_load_bytes},
                 {"static_shared_bytes", cuda.static_shared_bytes},
                 {"dynamic_shared_bytes", cuda.dynamic_shared_bytes},
                 {"block_threads", cuda.block_threads}};
    if (!cuda.occupancy) return json;
    json["occupancy"] = {{"blocks", cuda.occupancy->blocks},
                         {"warps", cuda.occupancy->warps},
                         {"most_warps", cuda.occupancy->most_warps},
                         {"limit", cuda.occupancy->limit}};
    return json;
}

Json sass_json(const SassSummary& sass) {
    Json json = {{"code", code_json(sass.code)}};
    if (sass.hot) json["hot_loop"] = loop_json(*sass.hot);
    if (!sass.shares.empty()) json["predicted"] = shares_json(sass.shares);
    return json;
}

}  // namespace

Summary summarise(const SummarySource& source) {
    Summary summary{source.program,
                    source.variant,
                    source.target,
                    source.image,
                    source.origin,
                    source.revision,
                    -1,
                    {},
                    {},
                    {},
                    {}};
    const auto elf = source.object ? rt::ElfView::open(*source.object) : std::nullopt;
    if (elf) summary.code_bytes = static_cast<std::int64_t>(elf->code_bytes());
    if (!elf)
        summary.lacks.push_back("code: " +
                                (source.object ? std::string("the image is no ELF") : source.object.error()));
    is_cuda_target(source.target) ? add_cuda(source, summary) : add_cpu(source, summary);
    return summary;
}

std::string summary_text(const Summary& summary, std::set<std::string>& told) {
    Rows rows = {{"image", summary.image + ", " + origin_text(summary.origin)}};
    if (summary.code_bytes >= 0) rows.emplace_back("code", bytes(summary.code_bytes));
    if (summary.cpu) add_rows(*summary.cpu, rows);
    if (summary.cuda) add_rows(*summary.cuda, rows);
    if (summary.sass) add_rows(*summary.sass, rows);
    for (const std::string& lack : summary.lacks) rows.emplace_back("lacks", lack_text(lack, told));
    std::string text = summary.program + ": " + summary.variant + " revision " + std::to_string(summary.revision) +
                       " for " + short_target(summary.target) + "\n";
    for (const auto& [name, value] : rows) text += "  " + name + std::string(11 - name.size(), ' ') + value + "\n";
    return text;
}

Json summary_json(const Summary& summary) {
    Json json = {{"code_bytes", summary.code_bytes < 0 ? Json() : Json(summary.code_bytes)}};
    if (summary.cpu) json.update(cpu_json(*summary.cpu));
    if (summary.cuda) json.update(cuda_json(*summary.cuda));
    if (summary.sass) json.update(sass_json(*summary.sass));
    json["lacks"] = summary.lacks;
    return json;
}

}  // namespace kvjit::tool
