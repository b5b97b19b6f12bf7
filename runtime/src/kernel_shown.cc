// What a kernel shows of itself, without loading anything.
#include <algorithm>

#include "check/fault.h"
#include "kernel.h"

namespace kvjit::rt {
namespace {

/// Checks that there is a program to show.
gen::Result<void> check_present(std::uint32_t asked, const gen::KernelSpec& spec, const gen::Target& target) {
    if (auto known = check_programs(asked); !known) return known;
    const std::uint32_t present = gen::program_bits(spec, target.backend);
    if ((asked & present) != 0) return {};
    return refuse(KVJIT_BAD_ARGUMENT, "programs", asked, present, text("on its target this op has ", present));
}

/// The first target that serves: where AMX is refused, the first whose programs use no tiles, if there is one.
const gen::Target& serving(const Images& images, const gen::KernelSpec& spec, const gen::TargetList& targets) {
    const auto serves = [&](const gen::Target& target) {
        if (images.tiles() != TilePermission::State::kRefused) return true;
        const gen::Result<std::vector<gen::Program>> programs = gen::lower(spec, target);
        return programs && !gen::use_tiles(*programs);
    };
    const auto found = std::ranges::find_if(targets, serves);
    return found != targets.end() ? *found : targets.front();
}

}  // namespace

gen::Result<Explanation> explain_kernel(const Images& images, const gen::KernelSpec& spec,
                                        const gen::TargetList& targets, std::uint32_t asked) {
    if (auto valid = gen::validate_spec(spec); !valid) return std::unexpected(valid.error());
    const gen::Target target = images.known_target(serving(images, spec, targets));
    if (auto present = check_present(asked, spec, target); !present) return std::unexpected(present.error());
    const gen::Result<std::vector<gen::Program>> lowered = gen::lower(spec, target);
    const gen::Result<void> served = lowered ? gen::Result<void>{} : std::unexpected(lowered.error());
    return Explanation{gen::explain(spec, target, asked), served};
}

KernelImage Kernel::loaded(std::size_t program) const {
    const std::lock_guard lock(mutex_);
    const kvjit_programs bit = programs()[program].info->bit;
    if (!set_[bit]) return {};
    const Lowered& lowered = lowered_[target_of_[bit]];
    const std::string identity = gen::identity_text(lowered.programs[program], lowered.target);
    return {&lowered.target, &lowered.programs[program], identity, images_->origin(identity), true};
}

gen::Result<std::optional<std::size_t>> Kernel::locate(KernelImage& image, std::size_t program,
                                                       std::size_t first) const {
    const std::vector<Candidate> asked = candidates(program, first);
    gen::Result<std::optional<Images::Found>> found = images_->locate(asked);
    if (!found) return std::unexpected(found.error());
    const Candidate candidate = *found ? asked[(*found)->which] : to_make(program, first);
    image = {candidate.target, candidate.program, gen::identity_text(*candidate.program, *candidate.target), nullptr};
    if (!*found) return std::nullopt;
    image.origin = std::move((*found)->origin);
    return number_of(*candidate.target);
}

gen::Result<std::vector<KernelImage>> Kernel::images(std::uint32_t asked) const {
    if (auto present = check_present(asked, spec_, target()); !present) return std::unexpected(present.error());
    std::optional<std::size_t> settled;
    {
        const std::lock_guard lock(mutex_);
        settled = settled_;
    }
    const std::size_t first = settled.value_or(0);
    std::vector<KernelImage> all;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < programs().size(); ++i) {
        if ((programs()[i].info->bit & asked) == 0) continue;
        numbers.push_back(i);
        KernelImage& image = all.emplace_back(loaded(i));
        if (image.is_loaded) continue;
        const auto of = locate(image, i, settled.value_or(0));
        if (!of) return std::unexpected(of.error());
        if (!settled) settled = *of;
    }
    // Programs that no store has are made for the target that the others settled on.
    for (std::size_t i = 0; i < all.size() && settled.value_or(0) != first; ++i) {
        if (all[i].origin) continue;
        if (const auto of = locate(all[i], numbers[i], *settled); !of) return std::unexpected(of.error());
    }
    return all;
}

gen::Result<std::string> Kernel::emit(std::uint32_t asked, kvjit_stage stage) const {
    const gen::Result<std::vector<KernelImage>> images = this->images(asked);
    if (!images) return std::unexpected(images.error());
    if (stage == KVJIT_STAGE_OBJECT && images->size() > 1) {
        return refuse(KVJIT_BAD_ARGUMENT, "programs", asked, bits(),
                      text("KVJIT_STAGE_OBJECT takes one program of those that the op has, ", bits()));
    }
    std::string texts;
    for (const KernelImage& image : *images) {
        gen::Result<std::string> part = images_->emit({image.target, image.program, &spec_}, image.origin, stage);
        if (!part) return part;
        texts += *part;
    }
    return texts;
}

}  // namespace kvjit::rt
