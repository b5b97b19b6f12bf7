#include "setup.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "first_call.h"
#include "limits/bandwidth.h"
#include "support/rng.h"

namespace kvjit::bench {
namespace {

constexpr double kManyTimes = 5;
constexpr double kLeastBytes = 256e6;
constexpr double kArenaSlack = 192e6;  // a layer more than what is beyond the cache
constexpr std::size_t kPage = 4096;

struct Scratch {
    Scratch() : path(std::filesystem::temp_directory_path() / "kvjit-bench-XXXXXX") {
        if (mkdtemp(path.data()) == nullptr) path.clear();
    }
    ~Scratch() {
        std::error_code ignored;
        if (!path.empty()) std::filesystem::remove_all(path, ignored);
    }
    std::string path;
};

/// Numbers of type T, mean 0 and deviation 1, that bfloat16 holds, so that none is NaN where other types are read from
/// the same bytes.
template <class T>
std::vector<std::byte> normal_pattern() {
    constexpr int kNumbers = 1 << 16;
    std::vector<T> numbers;
    test::Rng rng(1);
    for (int i = 0; i < kNumbers; ++i)
        numbers.push_back(T(static_cast<float>(bfloat16(static_cast<float>(rng.normal())))));
    const auto bytes = std::as_bytes(std::span(numbers));
    return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> pattern_of(kvjit_dtype type) {
    if (type == KVJIT_F32) return normal_pattern<float>();
    return type == KVJIT_BF16 ? normal_pattern<bfloat16>() : normal_pattern<half>();
}

/// The pattern over and over.
void fill(std::span<std::byte> memory, std::span<const std::byte> pattern) {
    for (; memory.size() > pattern.size(); memory = memory.subspan(pattern.size()))
        std::ranges::copy(pattern, memory.begin());
    std::ranges::copy(pattern.first(memory.size()), memory.begin());
}

/// What caches lie in, as numbers of `type`, which serve as codes and scales, too. Numbers of another type would be
/// read as tiny ones, whose products are subnormal and take many processors a hundred cycles.
std::span<std::byte> arena(kvjit_dtype type) {
    static std::vector<std::byte> memory(static_cast<std::size_t>(bytes_beyond_cache() + kArenaSlack));
    static std::optional<kvjit_dtype> held;
    if (held != type) fill(memory, pattern_of(type));
    held = type;
    return memory;
}

/// Bytes up to the next multiple of `unit`.
std::size_t bytes_to_multiple(std::size_t unit, std::size_t of) {
    return (unit - of % unit) % unit;
}

/// The arena from its first page on, and null where it ends. Every tensor begins with a cache line, as engines' do.
test::Allocate arena_memory(kvjit_dtype type) {
    const std::span<std::byte> memory = arena(type);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return [memory, next = bytes_to_multiple(kPage, address)](std::size_t bytes) mutable -> void* {
        const std::size_t begin = std::exchange(next, next + bytes + bytes_to_multiple(64, bytes));
        return next <= memory.size() ? memory.data() + begin : nullptr;
    };
}

}  // namespace

int thread_count() {
    return limits::usable_cores();
}

const std::string& scratch_folder() {
    static const Scratch scratch;
    return scratch.path;
}

const Engine& shared_engine() {
    static const Engine engine = [] {
        EngineOptions options;
        options.cache_dir = "";
        return *Engine::create(options);
    }();
    return engine;
}

std::string spec_text(const char* op, const CacheKind& kind, const char* layout, bool pages) {
    const bool attends = std::string_view(op) != "KeyValueCache";
    return std::string("op=") + op + ",head_dim=128,t1=f16," + (attends ? "group=4," : "") + kind.quantity +
           ",layout=" + layout + (pages ? ",cache_mode=page_table,page_size=128" : ",cache_mode=offset");
}

namespace {

test::CallShape shape_of(const std::string& spec, const Call::Size& size) {
    test::CallShape shape = test::even_shape(spec, size.sequences, size.tokens, size.keys);
    shape.num_kv_heads = size.kv_heads;
    shape.num_layers = size.layers;
    return shape;
}

kvjit_dtype type_of(const std::string& spec) {
    return static_cast<kvjit_dtype>(KernelSpec::parse(spec).value().t1);
}

/// Makes scales of the arena's numbers: kvjit stores none below 0.
void clear_signs(std::span<std::byte> halves) {
    for (std::size_t i = 1; i < halves.size(); i += 2) halves[i] &= std::byte{0x7f};
}

}  // namespace

Call::Call(const std::string& spec_text, Size call_size)
    : ApiCall(shape_of(spec_text, call_size), arena_memory(type_of(spec_text))), size(call_size) {
    if (right() && spec.quant_bit != 0) clear_signs(test::bytes_of(tensors.scale));
    test::Rng rng(2);
    if (test::has_pages(spec) || spec.cache_mode == KVJIT_TOKEN_TABLE) place_tokens(&rng);
    if (spec.is_alibi != 0) {
        slopes.assign(static_cast<std::size_t>(batch.num_heads), 0.1f);
        bind();
    }
    batch.decoding_batches = size.tokens == 1 ? size.sequences : 0;
    tensors.key = tensors.value = tensors.lse = Tensor();
    output_.resize(test::bytes_of(tensors.attn_output).size());
    tensors.attn_output.data = output_.data();
}

bool Call::right() const {
    return std::ranges::none_of(pieces(), [](std::span<std::byte> piece) { return piece.data() == nullptr; });
}

double Call::layer_bytes() const {
    const double bytes =
        static_cast<double>(test::bytes_of(tensors.cache).size() + test::bytes_of(tensors.scale).size());
    return bytes / static_cast<double>(size.layers);
}

double bytes_beyond_cache() {
    return std::max(kLeastBytes, kManyTimes * static_cast<double>(limits::last_level_cache_bytes()));
}

std::int64_t layers_beyond_cache(double layer_bytes) {
    return static_cast<std::int64_t>(std::ceil(bytes_beyond_cache() / layer_bytes));
}

double quantile(std::vector<double> values, double rank) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank * static_cast<double>(values.size()));
    std::ranges::nth_element(values, at);
    return *at;
}

namespace {

struct ChildResult {
    double seconds = 0;         // as the process says; 0: it failed
    double resident_bytes = 0;  // its peak
};

ChildResult start_child(std::string program, const std::string& store) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string path = store, now = std::to_string(monotonic_nanoseconds());
    char* const arguments[] = {program.data(), path.data(), now.data(), nullptr};
    pid_t child = 0;
    const bool started = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    char text[64] = {};
    if (started) static_cast<void>(!::read(ends[0], text, sizeof text - 1));
    ::close(ends[0]);
    int status = -1;
    if (!started || ::waitpid(child, &status, 0) != child || status != 0) return {};
    char* rest = nullptr;
    const double nanoseconds = std::strtod(text, &rest);
    return {nanoseconds * 1e-9, std::strtod(rest, nullptr)};
}

}  // namespace

void run_starts(benchmark::State& state, const std::string& store) {
    std::vector<double> seconds, bare;
    double resident = 0;
    for (auto _ : state) {
        const ChildResult child = start_child(KVJIT_FIRST_CALL, store);
        const ChildResult other = start_child(KVJIT_BARE_START, store);
        if (child.seconds <= 0 || other.seconds <= 0) return state.SkipWithError("the child process failed");
        state.SetIterationTime(child.seconds);
        seconds.push_back(child.seconds);
        bare.push_back(other.seconds);
        resident = child.resident_bytes;
    }
    state.counters["median_ms"] = 1e3 * median(seconds);
    state.counters["p10_ms"] = 1e3 * quantile(seconds, 0.1);
    state.counters["bare_ms"] = 1e3 * median(bare);
    state.counters["peak_rss_MB"] = resident / 1e6;
}

Result<void> run_layers(Plan& plan, const Call& call) {
    Result<void> done;
    for (std::int64_t layer = 0; done && layer < call.size.layers; ++layer) done = plan.run(call.tensors, layer);
    return done;
}

Result<Plan> make_plan(const test::IndexArrays& call) {
    const auto kernel = shared_engine().kernel(call.spec);
    if (!kernel) return kernel.error();
    PlanOptions options;
    options.num_threads = static_cast<std::uint32_t>(thread_count());
    return kernel->plan(call.batch, options);
}

}  // namespace kvjit::bench
