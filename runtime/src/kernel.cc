#include "kernel.h"

#include <algorithm>
#include <thread>

namespace kvjit::rt {

Kernel::Kernel(Engine& engine, const gen::KernelSpec& spec, const gen::Target& target)
    : engine_(engine), spec_(spec), target_(target), programs_(gen::lower(spec)) {
    for (const gen::Program& program : programs_) phases_ |= gen::program_info(program.kind).phase;
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
    const std::vector<const gen::Program*> wanted = missing(phases);
    if (wanted.empty()) return {};
    std::vector<gen::Result<void>> results(wanted.size());
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 1; i < wanted.size(); ++i) {
            threads.emplace_back([&, i] { results[i] = prepare_one(*wanted[i]); });
        }
        results[0] = prepare_one(*wanted[0]);
    }
    const auto failed = std::ranges::find_if(results, [](const auto& result) { return !result; });
    return failed == results.end() ? gen::Result<void>{} : *failed;
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
    std::string text;
    for (const gen::Program& program : programs_) {
        if ((gen::program_info(program.kind).phase & phases) == 0) continue;
        gen::Result<std::string> part = engine_.emit(program, target_, stage);
        if (!part) return part;
        text += *part;
    }
    return text;
}

}  // namespace kvjit::rt
