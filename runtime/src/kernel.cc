#include "kernel.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "check/fault.h"

namespace kvjit::rt {
namespace {

gen::Result<void> check_known(std::uint32_t phases) {
    if ((phases & ~std::uint32_t{KVJIT_ALL_PHASES}) == 0) return {};
    return refuse(KVJIT_BAD_ARGUMENT, "phases", phases, KVJIT_ALL_PHASES,
                  text("it takes bits of KVJIT_ALL_PHASES, ", int{KVJIT_ALL_PHASES}));
}

}  // namespace

Kernel::Kernel(Engine& engine, const gen::KernelSpec& spec, gen::Target target, std::vector<gen::Program> programs)
    : engine_(engine), spec_(spec), target_(std::move(target)), programs_(std::move(programs)) {
    for (const gen::Program& program : programs_) phases_ |= gen::program_info(program.kind).phase;
}

LaunchShape Kernel::launch(gen::ProgramKind kind) const {
    const auto it = std::ranges::find(programs_, kind, &gen::Program::kind);
    return it != programs_.end() ? it->launch : LaunchShape{};
}

std::vector<const gen::Program*> Kernel::missing(std::uint32_t phases) const {
    std::vector<const gen::Program*> found;
    for (const gen::Program& program : programs_) {
        const bool asked = (gen::program_info(program.kind).phase & phases) != 0;
        if (asked && entry(program.kind) == nullptr) found.push_back(&program);
    }
    return found;
}

gen::Result<void> Kernel::prepare(std::uint32_t phases) {
    if (auto known = check_known(phases); !known) return known;
    const std::vector<const gen::Program*> wanted = missing(phases);
    if (wanted.empty()) return {};
    std::vector<std::future<gen::Result<void>>> others;
    for (std::size_t i = 1; i < wanted.size(); ++i) others.push_back(prepare_beside(*wanted[i]));
    gen::Result<void> result = prepare_one(*wanted[0]);
    for (std::future<gen::Result<void>>& other : others) {
        gen::Result<void> ended = other.get();
        if (result) result = std::move(ended);
    }
    return result;
}

std::future<gen::Result<void>> Kernel::prepare_beside(const gen::Program& program) {
    const auto prepare = [this, &program] { return prepare_one(program); };
    try {
        return std::async(std::launch::async, prepare);
    } catch (const std::system_error&) {
        return std::async(std::launch::deferred, prepare);  // no thread to be had: in turn, then
    }
}

gen::Result<void> Kernel::prepare_one(const gen::Program& program) {
    gen::Result<ImagePtr> image = engine_.image(program, target_);
    if (!image) return std::unexpected(image.error());
    const auto index = static_cast<std::size_t>(program.kind);
    const std::lock_guard lock(images_mutex_);
    images_[index] = *std::move(image);
    entries_[index] = images_[index]->entry();
    return {};
}

gen::Result<std::string> Kernel::emit(std::uint32_t phases, kvjit_stage stage) {
    if (auto known = check_known(phases); !known) return std::unexpected(known.error());
    if ((phases & phases_) == 0) {
        return refuse(KVJIT_BAD_ARGUMENT, "phases", phases, phases_, text("on its target this op has ", phases_));
    }
    if (stage == KVJIT_STAGE_VARIANTS) return gen::explain(spec_, target_, phases);
    std::string texts;
    for (const gen::Program& program : programs_) {
        if ((gen::program_info(program.kind).phase & phases) == 0) continue;
        gen::Result<std::string> part = engine_.emit(program, target_, stage);
        if (!part) return part;
        texts += *part;
    }
    return texts;
}

}  // namespace kvjit::rt
