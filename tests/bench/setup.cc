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

#include "bandwidth.h"
#include "first_call.h"
#include "half.h"
#include "support/rng.h"

namespace kvjit::bench {
namespace {

constexpr double kManyTimes = 5;
constexpr double kLeastBytes = 256e6;
constexpr double kArenaSlack = 192e6;  // a layer more than what is beyond the cache
constexpr std::size_t kInputs = std::size_t{1} << 23;

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

/// Elements of float16 with mean 0 and deviation 1, over and over.
std::vector<std::uint16_t> normal_halves(std::size_t count) {
    constexpr std::size_t kPattern = 1 << 16;
    std::vector<std::uint16_t> memory(count);
    test::Rng rng(1);
    for (std::size_t i = 0; i < std::min(kPattern, count); ++i) {
        memory[i] = demo::to_half(static_cast<float>(rng.normal()));
    }
    for (std::size_t i = kPattern; i < count; ++i) memory[i] = memory[i - kPattern];
    return memory;
}

/// What caches lie in: one pattern serves float16, codes and scales.
std::vector<std::uint16_t>& arena() {
    static std::vector<std::uint16_t> memory =
        normal_halves(static_cast<std::size_t>((bytes_beyond_cache() + kArenaSlack) / 2));
    return memory;
}

/// What queries and new keys lie in; new values in the second half.
const std::uint16_t* inputs() {
    static const std::vector<std::uint16_t> memory = normal_halves(kInputs);
    return memory.data();
}

}  // namespace

const CacheKind kF16 = {"f16", "quant_bit=0", kDim * 2, 0, KVJIT_F16};
const CacheKind kInt8 = {"int8", "quant_bit=8", kDim, kDim / kQuantGroup * 2, KVJIT_I8};
const CacheKind kInt4 = {"int4", "quant_bit=4", kDim / 2, kDim / kQuantGroup * 2, KVJIT_U8};

int thread_count() {
    return demo::usable_cores();
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

Call::Call(const CacheKind& kind, const char* layout, bool pages, Size size)
    : kind_(kind), token_first_(layout[0] == 'T'), pages_(pages), size_(size) {
    for (std::int64_t b = 0; b <= size.sequences; ++b) {
        seqstarts_.push_back(b * size.tokens);
        kvstarts_.push_back(b * size.keys);
    }
    start_pos_.assign(static_cast<std::size_t>(size.sequences), size.keys - size.tokens);
    const std::int64_t pages_each = (size.keys + kPage - 1) / kPage;
    for (std::int64_t i = 0; i < size.sequences * (pages ? pages_each : 1); ++i) {
        table_.push_back(i * (pages ? kPage : pages_each * kPage));
    }
    if (pages) test::Rng(2).shuffle(table_);
    output_.resize(static_cast<std::size_t>(size.sequences * size.tokens * kHeads * kDim));
}

std::int64_t Call::slots() const {
    return size_.sequences * ((size_.keys + kPage - 1) / kPage) * kPage;
}

bool Call::right() const {
    const std::int64_t rows = size_.layers * 2 * kKvHeads * slots();
    return rows * (kind_.row_bytes + kind_.scale_bytes) <= static_cast<std::int64_t>(arena().size() * 2) &&
           output_.size() <= kInputs;
}

double Call::layer_bytes() const {
    return static_cast<double>(size_.sequences * size_.keys * 2 * kKvHeads * (kind_.row_bytes + kind_.scale_bytes));
}

Batch Call::batch() const {
    Batch batch;
    batch.batch_size = size_.sequences;
    batch.num_heads = kHeads;
    batch.num_kv_heads = kKvHeads;
    batch.num_layers = size_.layers;
    batch.max_tokens = slots();
    batch.decoding_batches = size_.tokens == 1 ? size_.sequences : 0;
    batch.seqstarts = seqstarts_.data();
    batch.kvstarts = kvstarts_.data();
    batch.start_pos = start_pos_.data();
    const auto entries = static_cast<std::int64_t>(table_.size());
    batch.cachestarts = pages_ ? Tensor(table_.data(), KVJIT_I64, {size_.sequences, entries / size_.sequences})
                               : Tensor(table_.data(), KVJIT_I64, {entries});
    return batch;
}

Tensor Call::cache_tensor(const void* data, kvjit_dtype dtype, std::int64_t row_elements) const {
    return token_first_ ? Tensor(data, dtype, {slots(), size_.layers, 2, kKvHeads, row_elements})
                        : Tensor(data, dtype, {size_.layers, 2, kKvHeads, slots(), row_elements});
}

Tensors Call::tensors() const {
    const std::int64_t tokens = size_.sequences * size_.tokens;
    const std::int64_t rows = size_.layers * 2 * kKvHeads * slots();
    std::uint16_t* codes = arena().data();
    Tensors tensors;
    tensors.cache = cache_tensor(codes, kind_.dtype, kind_.dtype == KVJIT_F16 ? kDim : kind_.row_bytes);
    if (kind_.scale_bytes != 0) {
        tensors.scale = cache_tensor(codes + rows * kind_.row_bytes / 2, KVJIT_F16, kDim / kQuantGroup);
    }
    tensors.query = Tensor(inputs(), KVJIT_F16, {tokens, kHeads, kDim});
    tensors.current_key = Tensor(inputs(), KVJIT_F16, {tokens, kKvHeads, kDim});
    tensors.current_value = Tensor(inputs() + kInputs / 2, KVJIT_F16, {tokens, kKvHeads, kDim});
    tensors.attn_output = Tensor(output_.data(), KVJIT_F16, {tokens, kHeads, kDim});
    return tensors;
}

double bytes_beyond_cache() {
    return std::max(kLeastBytes, kManyTimes * static_cast<double>(demo::last_level_cache_bytes()));
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

Result<Plan> make_plan(const std::string& spec, const Batch& batch) {
    const auto parsed = KernelSpec::parse(spec);
    if (!parsed) return parsed.error();
    const auto kernel = shared_engine().kernel(*parsed);
    if (!kernel) return kernel.error();
    PlanOptions options;
    options.num_threads = static_cast<std::uint32_t>(thread_count());
    return kernel->plan(batch, options);
}

}  // namespace kvjit::bench
