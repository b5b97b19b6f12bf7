#include "generator/program.h"

#include <algorithm>
#include <ranges>

#include "common/abi.h"
#include "generator/identity.h"
#include "generator/x86.h"

namespace kvjit::gen {
namespace {

auto programs_of(const KernelSpec& spec, Backend backend) {
    return std::views::filter(programs(), [op = spec.op, backend](const ProgramInfo& info) {
        return (info.use(backend).ops >> op & 1) != 0;
    });
}

std::string explain_variants(std::span<const Variant> variants, const KernelSpec& spec, const Target& target) {
    std::string text;
    bool found = false;
    for (const Variant& variant : variants) {
        text.append(variant.name).append(" (").append(variant.template_path).append(") ");
        const Result<void> serves = found ? Result<void>{} : variant.serves(spec, target);
        text += found ? "is not asked" : serves ? "serves" : "declines: " + serves.error().message;
        text += '\n';
        found = found || serves.has_value();
    }
    return text;
}

}  // namespace

std::uint32_t known_programs() {
    return (1U << programs().size()) - 1;
}

bool runs(const KernelSpec& spec, kvjit_programs program) {
    const ProgramInfo& info = *std::ranges::find(programs(), program, &ProgramInfo::bit);
    return ((info.cpu.ops | info.cuda.ops) >> spec.op & 1) != 0;
}

Result<const Variant*> choose_variant(const ProgramInfo& info, const KernelSpec& spec, const Target& target) {
    Result<const Variant*> chosen = nullptr;
    for (const Variant& variant : info.use(target.backend).variants) {
        const Result<void> serves = variant.serves(spec, target);
        if (serves) return &variant;
        chosen = std::unexpected(serves.error());
    }
    return chosen;
}

Result<std::vector<Program>> lower(const KernelSpec& spec, const Target& target) {
    std::vector<Program> lowered;
    for (const ProgramInfo& info : programs_of(spec, target.backend)) {
        const Result<const Variant*> variant = choose_variant(info, spec, target);
        if (!variant) return std::unexpected(variant.error());
        lowered.push_back({&info, *variant, (*variant)->launch(spec, target), info.constants(spec, target.backend),
                           (*variant)->uses_tiles && !target.emulates_amx});
    }
    return lowered;
}

bool use_tiles(std::span<const Program> programs) {
    return std::ranges::any_of(programs, &Program::uses_tiles);
}

std::uint32_t program_bits(const KernelSpec& spec, Backend backend) {
    std::uint32_t bits = 0;
    for (const ProgramInfo& info : programs_of(spec, backend)) bits |= info.bit;
    return bits;
}

std::string explain(const KernelSpec& spec, const Target& target, std::uint32_t programs) {
    std::string text;
    for (const ProgramInfo& info : programs_of(spec, target.backend)) {
        if ((info.bit & programs) == 0) continue;
        text.append(info.label).append(":\n");
        text.append(explain_variants(info.use(target.backend).variants, spec, target));
    }
    return text;
}

std::string identity_text(const Program& program, const Target& target) {
    Identity identity{std::string(program.info->name),
                      std::string(program.variant->name),
                      program.variant->revision,
                      {},
                      abi::kKernelAbi,
                      target.text()};
    for (const Constant& constant : program.constants) identity.constants.push_back({constant.name, constant.value});
    return print_identity(identity);
}

}  // namespace kvjit::gen
