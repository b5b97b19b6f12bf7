#include "gpu/bench/setup.h"

#include <algorithm>

#include "call/oracle.h"
#include "support/rng.h"

namespace kvjit::bench {
namespace {

constexpr std::size_t kPatternHalves = std::size_t{1} << 20;
constexpr double kUsable = 0.9;  // of the free memory

std::vector<std::uint16_t> pattern(double deviation) {
    test::Rng rng(1);
    std::vector<std::uint16_t> halves(kPatternHalves);
    for (std::uint16_t& half : halves) half = test::to_half(deviation * rng.normal());
    return halves;
}

}  // namespace

Engine memory_engine() {
    EngineOptions options;
    options.cache_dir = "";
    return value_of(Engine::create(options));
}

const Engine& shared_engine() {
    static const Engine engine = memory_engine();
    return engine;
}

Kernel kernel_for(const Setup& setup, const std::string& spec, const Engine& engine) {
    const Target target = value_of(Target::cuda(setup.target));
    return value_of(engine.kernel(value_of(KernelSpec::parse(spec)), target));
}

Plan plan_for(const Setup& setup, const std::string& spec, const kvjit_batch& batch, kvjit_check_level level) {
    PlanOptions options;
    options.check_level = level;
    options.stream = setup.stream.get();
    return value_of(kernel_for(setup, spec).plan(batch, options));
}

void fill_normal(const gpu::DeviceMemory& memory, double deviation) {
    const std::vector<std::uint16_t> halves = pattern(deviation);
    gpu::repeat_on_device(memory.data(), memory.size(), halves.data(), halves.size() * sizeof halves[0]);
}

gpu::DeviceMemory normal_halves(const gpu::Gpu& gpu, std::size_t bytes, double deviation) {
    gpu::DeviceMemory memory(gpu, bytes);
    fill_normal(memory, deviation);
    return memory;
}

const void* DevicePieces::put(const void* data, std::size_t bytes) {
    const gpu::DeviceMemory& piece = pieces_.emplace_back(gpu_, bytes);
    gpu::copy_to_device(piece.data(), data, bytes);
    return piece.data();
}

void* DevicePieces::take_normal(std::size_t bytes) {
    return pieces_.emplace_back(normal_halves(gpu_, bytes)).data();
}

std::vector<std::int64_t> arithmetic(std::int64_t count, std::int64_t first, std::int64_t step) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(first + i * step);
    return values;
}

bool fits(const Setup& setup, const std::string& what, double bytes) {
    const double usable = kUsable * static_cast<double>(setup.gpu.memory().free_bytes);
    if (bytes <= usable) return true;
    setup.report.skip(what, "needs " + std::to_string(static_cast<long>(bytes / 1e6)) + " MB of device memory, has " +
                                std::to_string(static_cast<long>(usable / 1e6)));
    return false;
}

}  // namespace kvjit::bench
