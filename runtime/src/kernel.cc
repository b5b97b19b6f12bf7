#include "kernel.h"

#include <algorithm>
#include <system_error>
#include <tuple>

#include "check/fault.h"
#include "no_fork.h"

namespace kvjit::rt {
namespace {

/// What a bundle is made for that serves the target: a CPU's level rather than one machine's features.
std::string name_in_bundles(const gen::Target& target) {
    std::string name = target.name();
    return target.backend == gen::Backend::kCpu ? name.substr(0, name.find('+')) : name;
}

/// Adds after each target that the compiler doesn't know the target it compiles for instead, unless it is in the list.
gen::TargetList with_known(const Images& images, const gen::TargetList& targets) {
    gen::TargetList all;
    for (const gen::Target& target : targets) {
        all.push_back(target);
        const gen::Target known = images.known_target(target);
        const auto is_there = [&](const gen::TargetList& list) { return std::ranges::find(list, known) != list.end(); };
        if (!is_there(targets) && !is_there(all)) all.push_back(known);
    }
    return all;
}

}  // namespace

gen::Result<void> check_programs(std::uint32_t asked) {
    const std::uint32_t known = gen::known_programs();
    if (asked == KVJIT_ALL_PROGRAMS || (asked & ~known) == 0) return {};
    return refuse(KVJIT_BAD_ARGUMENT, "programs", asked, known,
                  text("it takes KVJIT_ALL_PROGRAMS or bits of kvjit_programs, ", known));
}

gen::Result<KernelPtr> Kernel::make(std::shared_ptr<Images> images, const gen::KernelSpec& spec,
                                    const gen::TargetList& targets) {
    if (auto valid = gen::validate_spec(spec); !valid) return std::unexpected(valid.error());
    std::vector<Lowered> lowered;
    for (const gen::Target& target : with_known(*images, targets)) {
        gen::Result<std::vector<gen::Program>> programs = gen::lower(spec, target);
        if (!programs && lowered.empty()) return std::unexpected(programs.error());
        if (!programs) continue;
        const gen::TokenCounts counts =
            target.backend == gen::Backend::kCpu ? gen::cpu_decode_tokens(spec, target, *programs) : gen::TokenCounts();
        lowered.push_back({target, *std::move(programs), lowered.size(), lowered.size(), counts});
    }
    for (Lowered& one : lowered) {
        const auto made = std::ranges::find(lowered, images->known_target(one.target), &Lowered::target);
        if (made != lowered.end()) one.made_as = static_cast<std::size_t>(made - lowered.begin());
    }
    for (auto one = lowered.begin(); one != lowered.end(); ++one) {
        const auto other =
            std::find_if(one, lowered.end(), [](const Lowered& l) { return !gen::use_tiles(l.programs); });
        if (other != lowered.end()) one->without_tiles = static_cast<std::size_t>(other - lowered.begin());
    }
    return KernelPtr(new Kernel(std::move(images), spec, std::move(lowered)));
}

Kernel::Kernel(std::shared_ptr<Images> images, const gen::KernelSpec& spec, std::vector<Lowered> lowered)
    : images_(std::move(images)), spec_(spec), lowered_(std::move(lowered)) {}

std::vector<std::size_t> Kernel::missing(std::uint32_t asked) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < programs().size(); ++i) {
        const gen::Program& program = programs()[i];
        const bool named = (program.info->bit & asked) != 0;
        if (named && !set_[program.info->bit]) found.push_back(i);
    }
    return found;
}

gen::Result<std::vector<std::size_t>> Kernel::unknown(std::uint32_t asked) {
    if (auto known = check_programs(asked); !known) return std::unexpected(known.error());
    std::vector<std::size_t> wanted = missing(asked);
    if (wanted.empty()) return wanted;
    ask_for_tiles(wanted);
    trace(wanted);
    if (auto found = take_known(wanted); !found) return std::unexpected(found.error());
    return wanted;
}

gen::Result<std::uint32_t> Kernel::take_stored(std::uint32_t asked) {
    const NoFork stays;
    const gen::Result<std::vector<std::size_t>> left = unknown(asked);
    if (!left) return std::unexpected(left.error());
    std::uint32_t bits = 0;
    for (const std::size_t program : *left) bits |= programs()[program].info->bit;
    return bits;
}

gen::TokenCounts Kernel::decode_tokens(const gen::TokenCounts& in_batch) const {
    constexpr std::uint32_t kAttention = KVJIT_PROGRAM_DECODE | KVJIT_PROGRAM_PREFILL;
    const gen::TokenCounts& by_tiles = lowered_[lowered_[0].made_as].decode_tokens;
    const gen::TokenCounts& without = lowered_[lowered_[lowered_[0].without_tiles].made_as].decode_tokens;
    if (!by_tiles.differ(without, in_batch)) return by_tiles;
    if (!serves_by_tiles()) return without;
    if (images_->tiles() == TilePermission::State::kUnasked) ask_for_tiles(missing(kAttention));
    return serves_by_tiles() ? by_tiles : without;
}

bool Kernel::serves_by_tiles() const {
    std::unique_lock lock(mutex_);
    if (settled_) return gen::use_tiles(lowered_[served(*settled_)].programs);
    lock.unlock();
    return would_use_tiles(missing(KVJIT_ALL_PROGRAMS));
}

gen::Result<ImageSet> Kernel::prepare(std::uint32_t asked) {
    const NoFork stays;
    const gen::Result<std::vector<std::size_t>> left = unknown(asked);
    if (!left) return std::unexpected(left.error());
    if (auto made = make_all(*left); !made) return std::unexpected(made.error());
    const std::lock_guard lock(mutex_);
    return set_;
}

std::size_t Kernel::served(std::size_t target) const {
    return images_->tiles() == TilePermission::State::kRefused ? lowered_[target].without_tiles : target;
}

void Kernel::ask_for_tiles(const std::vector<std::size_t>& wanted) const {
    const auto may_use_tiles = [&](const Lowered& lowered) {
        return std::ranges::any_of(wanted, [&](std::size_t i) { return lowered.programs[i].uses_tiles; });
    };
    if (std::ranges::none_of(lowered_, may_use_tiles)) return;
    if (images_->tiles() == TilePermission::State::kUnasked && !would_use_tiles(wanted)) return;
    // Its error is that of images that can't do without. Others are of another target then.
    std::ignore = images_->permit_tiles(target());
}

bool Kernel::would_use_tiles(const std::vector<std::size_t>& wanted) const {
    std::uint32_t asked = 0;
    for (const std::size_t program : wanted) asked |= programs()[program].info->bit;
    const gen::Result<std::vector<KernelImage>> images = this->images(asked);
    const auto uses = [](const KernelImage& image) { return image.program->uses_tiles; };
    return images && std::ranges::any_of(*images, uses);
}

void Kernel::trace(const std::vector<std::size_t>& wanted) const {
    if (images_->trace() == nullptr) return;
    for (const std::size_t program : wanted) images_->trace()->add(spec_, target(), *programs()[program].info);
}

std::vector<Candidate> Kernel::candidates(std::size_t program) const {
    const std::lock_guard lock(mutex_);
    return candidates(program, settled_.value_or(0));
}

std::vector<Candidate> Kernel::candidates(std::size_t program, std::size_t first) const {
    std::vector<Candidate> all;
    const auto add = [&](std::size_t i) {
        all.push_back({&lowered_[i].target, &lowered_[i].programs[program], &spec_});
    };
    const std::size_t best = served(first);
    add(best);
    for (std::size_t i = 0; i < lowered_.size(); ++i) {
        if (i != best && served(i) == i) add(i);
    }
    return all;
}

Candidate Kernel::to_make(std::size_t program) const {
    const std::lock_guard lock(mutex_);
    return to_make(program, settled_.value_or(0));
}

Candidate Kernel::to_make(std::size_t program, std::size_t first) const {
    const Lowered& made = lowered_[made_as(first)];
    return {&made.target, &made.programs[program], &spec_};
}

std::size_t Kernel::number_of(const gen::Target& target) const {
    const auto found = std::ranges::find(lowered_, &target, [](const Lowered& lowered) { return &lowered.target; });
    return static_cast<std::size_t>(found - lowered_.begin());
}

gen::Result<void> Kernel::take_known(std::vector<std::size_t>& wanted) {
    const std::lock_guard deciding(finding_);
    std::vector<std::size_t> unknown;
    for (const std::size_t program : wanted) {
        const std::vector<Candidate> asked = candidates(program);
        gen::Result<std::optional<Images::Found>> found = images_->find(asked);
        if (!found) return std::unexpected(found.error());
        if (*found) {
            take(program, *asked[(*found)->which].target, std::move((*found)->image));
        } else {
            unknown.push_back(program);
        }
    }
    wanted = std::move(unknown);
    return {};
}

void Kernel::take(std::size_t program, const gen::Target& target, ImagePtr image) {
    const std::size_t which = number_of(target);
    const gen::Program& taken = lowered_[which].programs[program];
    std::size_t settled = which;
    {
        const std::lock_guard lock(mutex_);
        settled = settled_.value_or(which);
        settled_ = settled;
        set_[taken.info->bit] = std::move(image);
        target_of_[taken.info->bit] = which;
    }
    if (served(which) == served(settled)) return;
    images_->log()(
        KVJIT_LOG_WARNING,
        text(taken.info->label, " is there for ", target.text(), " only, not for ", lowered_[settled].target.text(),
             ", as the kernel's other programs are: results differ from those of one target by rounding"));
}

gen::Result<void> Kernel::make_all(const std::vector<std::size_t>& wanted) {
    if (wanted.empty()) return {};
    std::vector<std::future<gen::Result<void>>> others;
    for (std::size_t i = 1; i < wanted.size(); ++i) others.push_back(make_beside(wanted[i]));
    gen::Result<void> result = make_one(wanted[0]);
    for (std::future<gen::Result<void>>& other : others) {
        gen::Result<void> ended = other.get();
        if (result) result = std::move(ended);
    }
    return result;
}

gen::Result<void> Kernel::make_one(std::size_t program) {
    for (;;) {
        const Candidate wanted = to_make(program);
        gen::Result<ImagePtr> image = images_->make(wanted);
        if (!image) return std::unexpected(with_line(image.error(), *wanted.target));
        if (!settles(*wanted.target))
            continue;  // a store has found another program meanwhile; what is made is for its target
        take(program, *wanted.target, *std::move(image));
        return {};
    }
}

bool Kernel::settles(const gen::Target& target) {
    const std::lock_guard lock(mutex_);
    const std::size_t made = number_of(target);
    if (settled_) return made_as(*settled_) == made;
    settled_ = made;
    return true;
}

gen::Error Kernel::with_line(gen::Error error, const gen::Target& target) const {
    if (error.status != KVJIT_NOT_FOUND && error.status != KVJIT_COMPILER_MISSING) return error;
    const std::string best = name_in_bundles(lowered_[0].target);
    if (served(0) != 0 && best != name_in_bundles(target))
        error.message += "; AMX is refused to this process or forbidden, so programs for " + best + " don't serve";
    error.message += "; to have it in a bundle for " + name_in_bundles(target) +
                     ", add this line to the bundle's specs.txt: " + gen::print_spec(spec_);
    return error;
}

std::future<gen::Result<void>> Kernel::make_beside(std::size_t program) {
    const auto make = [this, program] { return make_one(program); };
    try {
        return std::async(std::launch::async, make);
    } catch (const std::system_error&) {
        return std::async(std::launch::deferred, make);  // without a thread: run in turn
    }
}

}  // namespace kvjit::rt
