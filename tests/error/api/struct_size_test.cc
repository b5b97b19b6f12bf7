// A struct of an older header ends where one of today's fields ends, or at the padding after it. No other size is
// taken, of no struct that has one, be it behind a pointer: half a pointer would be followed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kvjit/blocks.h"
#include "public_call.h"
#include "relayout_case.h"
#include "support/guarded_buffer.h"

namespace kvjit::test {
namespace {

struct Field {
    std::size_t begin, end, alignment;
};
#define FIELD(type, member)                                                                                    \
    Field {                                                                                                    \
        offsetof(type, member), offsetof(type, member) + sizeof(type::member), alignof(decltype(type::member)) \
    }

/// Where headers that had fields 0..i, for each i, say that the struct ends: sizeof them.
std::vector<std::size_t> sizes_of(const std::vector<Field>& fields) {
    std::vector<std::size_t> sizes;
    std::size_t alignment = 1;
    for (const Field& field : fields) {
        alignment = std::max(alignment, field.alignment);
        sizes.push_back(field.end);
        sizes.push_back((field.end + alignment - 1) / alignment * alignment);
    }
    return sizes;
}

/// `use(pointer, error)` hands the first `size` bytes of `whole` over, past which nothing can be touched.
template <class T>
void check_sizes(const std::string& argument, const T& whole, const std::vector<Field>& fields,
                 const std::function<kvjit_status(T*, kvjit_error*)>& use) {
    const std::vector<std::size_t> sizes = sizes_of(fields);
    CHECK(sizes.back() == sizeof(T));
    T zeros{};
    kvjit_error zero_error = new_error();
    CHECK(use(&zeros, &zero_error) == KVJIT_BAD_ARGUMENT);
    CHECK(zero_error.argument == argument + ".struct_size");
    CHECK(zero_error.limit == sizeof(T));
    for (std::size_t size = sizeof whole.struct_size; size <= sizeof(T) + 8; ++size) {
        CAPTURE(argument);
        CAPTURE(size);
        T given{};
        std::memcpy(static_cast<void*>(&given), &whole, std::min(size, sizeof(T)));
        given.struct_size = static_cast<std::uint32_t>(size);
        GuardedBuffer memory(std::min((size + 7) / 8 * 8, sizeof(T)), Guard::kAfter);
        std::memcpy(memory.data(), &given, memory.size());
        kvjit_error error = new_error();
        use(reinterpret_cast<T*>(memory.data()), &error);
        const bool refused = error.argument == argument + ".struct_size";
        CHECK(refused == (std::ranges::find(sizes, size) == sizes.end()));
        if (!refused) continue;
        CHECK(error.status == KVJIT_BAD_ARGUMENT);
        CHECK(error.value == static_cast<std::int64_t>(size));
        CHECK(error.limit == sizeof(T));
    }
}

#define F(member) FIELD(kvjit_batch, member)
const std::vector<Field> kBatchFields = {
    F(struct_size), F(batch_size),       F(num_heads),    F(num_kv_heads), F(num_layers),   F(max_tokens),
    F(num_blocks),  F(decoding_batches), F(max_seqlen),   F(max_kvlen),    F(seqstarts),    F(kvstarts),
    F(start_pos),   F(cachestarts),      F(rowstarts),    F(row_index),    F(alibi_slopes), F(softmax_scale),
    F(num_repeat),  F(window_left),      F(window_right), F(soft_cap),     F(kvlens),       F(last_page_len),
    F(scalestarts), F(store_slots)};
#undef F
#define F(member) FIELD(kvjit_tensors, member)
const std::vector<Field> kTensorsFields = {
    F(struct_size), F(query),       F(current_key),    F(current_value), F(cache),       F(scale),
    F(key_cache),   F(value_cache), F(key_scale),      F(value_scale),   F(attn_mask),   F(sinks),
    F(key),         F(value),       F(partial_output), F(partial_lse),   F(attn_output), F(lse)};
#undef F
#define F(member) FIELD(kvjit_spec, member)
const std::vector<Field> kSpecFields = {F(struct_size),
                                        F(op),
                                        F(head_dim),
                                        F(value_head_dim),
                                        F(group),
                                        F(t1),
                                        F(t2),
                                        F(t3),
                                        F(quant_bit),
                                        F(quant_group),
                                        F(cache_mode),
                                        F(page_size),
                                        F(index_type),
                                        F(starts_type),
                                        F(is_causal),
                                        F(is_alibi),
                                        F(has_window),
                                        F(has_soft_cap),
                                        F(has_sinks),
                                        F(attn_mask),
                                        F(layout),
                                        F(value_layout),
                                        F(to_t2),
                                        F(to_t3),
                                        F(to_quant_bit),
                                        F(to_quant_group),
                                        F(to_cache_mode),
                                        F(to_page_size),
                                        F(to_index_type),
                                        F(to_layout),
                                        F(to_value_layout)};
#undef F
#define F(member) FIELD(kvjit_relayout, member)
const std::vector<Field> kRelayoutFields = {F(struct_size), F(from),         F(to),        F(from_ranks),
                                            F(from_rank),   F(to_ranks),     F(to_rank),   F(from_head),
                                            F(to_head),     F(num_kv_heads), F(num_layers)};
#undef F
#define F(member) FIELD(kvjit_plan_options, member)
const std::vector<Field> kPlanFields = {F(struct_size),     F(check_level),    F(executor), F(workspace),
                                        F(workspace_bytes), F(num_threads),    F(stream),   F(host_batch),
                                        F(split_keys),      F(stores_nothing), F(spin_us),  F(prefill_split_keys)};
#undef F
#define F(member) FIELD(kvjit_engine_options, member)
const std::vector<Field> kEngineFields = {F(struct_size),
                                          F(jit),
                                          F(cache_dir),
                                          F(cache_max_bytes),
                                          F(template_dir),
                                          F(compiler),
                                          F(log),
                                          F(log_context),
                                          F(max_idle_kernels),
                                          F(bundle_key),
                                          F(trace_specs),
                                          F(on_late_compile),
                                          F(late_compile_context),
                                          F(amx),
                                          F(record),
                                          F(log_level),
                                          F(count_runs)};
#undef F
#define F(member) FIELD(kvjit_executor, member)
const std::vector<Field> kExecutorFields = {F(struct_size), F(concurrency), F(context), F(run)};
#undef F
#define F(member) FIELD(kvjit_engine_stats, member)
const std::vector<Field> kStatsFields = {
    F(struct_size),           F(compiles),     F(disk_hits),   F(memory_hits),    F(compile_seconds),
    F(compiler_load_seconds), F(disk_seconds), F(bundle_hits), F(bundle_seconds), F(late_compiles)};
#undef F
#define F(member) FIELD(kvjit_run_stats, member)
const std::vector<Field> kRunStatsFields = {F(struct_size), F(runs), F(seconds), F(bytes), F(operations)};
#undef F
#define F(member) FIELD(kvjit_prepare_options, member)
const std::vector<Field> kPrepareFields = {F(struct_size), F(programs), F(num_threads), F(progress),
                                           F(progress_context)};
#undef F
#define F(member) FIELD(kvjit_image_info, member)
const std::vector<Field> kImageFields = {F(struct_size),  F(program),       F(origin),      F(is_loaded), F(revision),
                                         F(object_bytes), F(name),          F(variant),     F(target),    F(identity),
                                         F(place),        F(block_threads), F(shared_bytes)};
#undef F

#define F(member) FIELD(kvjit_blocks, member)
const std::vector<Field> kBlocksFields = {F(struct_size), F(memory), F(spec), F(batch), F(tensors)};
#undef F
#define F(member) FIELD(kvjit_blocks_options, member)
const std::vector<Field> kBlocksOptionsFields = {F(struct_size), F(num_threads), F(executor),
                                                 F(stream),      F(device),      F(spin_us)};
#undef F

/// Plans for `c`, whatever comes of it.
struct Planner {
    explicit Planner(const TensorsCase& c) : kernel(kernel_of(c.spec)), batch(c.batch) {
        kvjit_plan_options_init(&options);
    }

    kvjit_status operator()(kvjit_error* error) const { return plan(&batch, &options, error); }
    kvjit_status plan(const kvjit_batch* of, const kvjit_plan_options* how, kvjit_error* error) const {
        kvjit_plan* made = nullptr;
        const kvjit_status status = kvjit_plan_create(kernel.get(), of, how, &made, error);
        kvjit_plan_release(made);
        return status;
    }

    Handle<kvjit_kernel> kernel;
    kvjit_batch batch;
    kvjit_plan_options options;
};

TEST_CASE("zeroed memory is no struct yet: the refusal names the function that makes it one") {
    const TensorsCase c("op=MultiHeadAttention");
    const Planner planner(c);
    kvjit_error error = new_error();
    const kvjit_batch batch{};
    CHECK(planner.plan(&batch, &planner.options, &error) == KVJIT_BAD_ARGUMENT);
    CHECK(std::string(error.message) ==
          "batch.struct_size is 0; call kvjit_batch_init on it before its fields are set");
    kvjit_plan_options options = planner.options;
    options.host_batch = &batch;
    CHECK(planner.plan(&c.batch, &options, &error) == KVJIT_BAD_ARGUMENT);
    CHECK(std::string(error.message).starts_with("host_batch.struct_size is 0; call kvjit_batch_init on it"));
    const kvjit_spec spec{};
    CHECK(kvjit_spec_print(&spec, [](void*, const char*, std::size_t) {}, nullptr, &error) == KVJIT_BAD_ARGUMENT);
    CHECK(std::string(error.message).starts_with("spec.struct_size is 0; call kvjit_spec_init on it"));
}

TEST_CASE("a batch ends where a field ends") {
    const TensorsCase c("op=MultiHeadAttention");
    const Planner planner(c);
    check_sizes<kvjit_batch>("batch", c.batch, kBatchFields, [&](kvjit_batch* batch, kvjit_error* error) {
        return planner.plan(batch, &planner.options, error);
    });
}

TEST_CASE("a plan's options, and what they point to, end where a field ends") {
    const TensorsCase c("op=MultiHeadAttention");
    Planner planner(c);
    check_sizes<kvjit_plan_options>(
        "options", planner.options, kPlanFields,
        [&](kvjit_plan_options* options, kvjit_error* error) { return planner.plan(&c.batch, options, error); });
    const kvjit_executor executor{sizeof executor, 1, nullptr, [](void*, void (*)(void*, int64_t), void*, int64_t) {}};
    check_sizes<kvjit_executor>("executor", executor, kExecutorFields, [&](kvjit_executor* given, kvjit_error* error) {
        planner.options.executor = given;
        return planner(error);
    });
    planner.options.executor = nullptr;
    check_sizes<kvjit_batch>("host_batch", c.batch, kBatchFields, [&](kvjit_batch* given, kvjit_error* error) {
        planner.options.host_batch = given;
        return planner(error);
    });
}

TEST_CASE("a relayout, its batches, tensors and specs end where a field ends") {
    RelayoutCase c("cache_mode=offset", "cache_mode=page_table");
    const Handle<kvjit_kernel> kernel = kernel_of(c.spec());
    const auto plan = [&](const kvjit_relayout* relayout, kvjit_error* error) {
        kvjit_plan* made = nullptr;
        const kvjit_status status = kvjit_relayout_plan_create(kernel.get(), relayout, &c.options, &made, error);
        kvjit_plan_release(made);
        return status;
    };
    const kvjit_relayout whole = c.relayout;
    check_sizes<kvjit_relayout>("relayout", whole, kRelayoutFields, plan);
    check_sizes<kvjit_batch>("from", c.from.batch, kBatchFields, [&](kvjit_batch* batch, kvjit_error* error) {
        c.relayout.from = batch;
        return plan(&c.relayout, error);
    });
    c.relayout = whole;
    check_sizes<kvjit_batch>("to", c.to.batch, kBatchFields, [&](kvjit_batch* batch, kvjit_error* error) {
        c.relayout.to = batch;
        return plan(&c.relayout, error);
    });
    c.relayout = whole;
    const Handle<kvjit_plan> right = c.plan();
    check_sizes<kvjit_tensors>("from", c.read, kTensorsFields, [&](kvjit_tensors* tensors, kvjit_error* error) {
        return kvjit_relayout_run(right.get(), tensors, 0, &c.written, 0, error);
    });
    check_sizes<kvjit_tensors>("to", c.written, kTensorsFields, [&](kvjit_tensors* tensors, kvjit_error* error) {
        return kvjit_relayout_run(right.get(), &c.read, 0, tensors, 0, error);
    });
    kvjit_spec result;
    check_sizes<kvjit_spec>("from", c.from.spec, kSpecFields, [&](kvjit_spec* spec, kvjit_error* error) {
        return kvjit_relayout_spec(spec, &c.to.spec, &result, error);
    });
    check_sizes<kvjit_spec>("to", c.to.spec, kSpecFields, [&](kvjit_spec* spec, kvjit_error* error) {
        return kvjit_relayout_spec(&c.from.spec, spec, &result, error);
    });
}

TEST_CASE("tensors, a spec and an engine's options end where a field ends") {
    const TensorsCase c("op=MultiHeadAttention");
    const Handle<kvjit_plan> plan = plan_of(c);
    check_sizes<kvjit_tensors>("tensors", c.tensors, kTensorsFields, [&](kvjit_tensors* tensors, kvjit_error* error) {
        return kvjit_run(plan.get(), tensors, 0, error);
    });
    check_sizes<kvjit_spec>("spec", c.spec, kSpecFields, [](kvjit_spec* spec, kvjit_error* error) {
        return kvjit_spec_print(spec, [](void*, const char*, std::size_t) {}, nullptr, error);
    });
    kvjit_engine_options options;
    kvjit_engine_options_init(&options);
    options.cache_dir = "";
    check_sizes<kvjit_engine_options>("options", options, kEngineFields,
                                      [](kvjit_engine_options* given, kvjit_error* error) {
                                          kvjit_engine* engine = nullptr;
                                          const kvjit_status status = kvjit_engine_create(given, &engine, error);
                                          kvjit_engine_release(engine);
                                          return status;
                                      });
}

TEST_CASE("blocks, what they point to, and the options of their calls end where a field ends") {
    TensorsCase c("op=KeyValueCache");
    kvjit_blocks blocks;
    kvjit_blocks_init(&blocks);
    blocks.spec = &c.spec;
    blocks.batch = &c.batch;
    blocks.tensors = &c.tensors;
    kvjit_blocks_options options;
    kvjit_blocks_options_init(&options);
    const auto move = [&](const kvjit_blocks* of, kvjit_error* error) {
        return kvjit_blocks_move(of, nullptr, nullptr, 0, &options, error);
    };
    CHECK(move(&blocks, nullptr) == KVJIT_OK);
    check_sizes<kvjit_blocks>("blocks", blocks, kBlocksFields,
                              [&](kvjit_blocks* given, kvjit_error* error) { return move(given, error); });
    check_sizes<kvjit_spec>("blocks.spec", c.spec, kSpecFields, [&](kvjit_spec* given, kvjit_error* error) {
        kvjit_blocks of = blocks;
        of.spec = given;
        return move(&of, error);
    });
    check_sizes<kvjit_batch>("blocks.batch", c.batch, kBatchFields, [&](kvjit_batch* given, kvjit_error* error) {
        kvjit_blocks of = blocks;
        of.batch = given;
        return move(&of, error);
    });
    check_sizes<kvjit_tensors>("blocks.tensors", c.tensors, kTensorsFields,
                               [&](kvjit_tensors* given, kvjit_error* error) {
                                   kvjit_blocks of = blocks;
                                   of.tensors = given;
                                   return move(&of, error);
                               });
    check_sizes<kvjit_blocks_options>("options", options, kBlocksOptionsFields,
                                      [&](kvjit_blocks_options* given, kvjit_error* error) {
                                          return kvjit_blocks_move(&blocks, nullptr, nullptr, 0, given, error);
                                      });
    const kvjit_executor executor{sizeof executor, 1, nullptr, [](void*, void (*)(void*, int64_t), void*, int64_t) {}};
    check_sizes<kvjit_executor>("executor", executor, kExecutorFields, [&](kvjit_executor* given, kvjit_error* error) {
        options.executor = given;
        return move(&blocks, error);
    });
}

TEST_CASE("options of preparing, and each of the specs, end where a field ends") {
    kvjit_prepare_options options;
    kvjit_prepare_options_init(&options);
    options.programs = 0;
    check_sizes<kvjit_prepare_options>(
        "options", options, kPrepareFields, [](kvjit_prepare_options* given, kvjit_error* error) {
            return kvjit_engine_prepare(shared_engine(), nullptr, 0, nullptr, given, error);
        });
    const TensorsCase c("op=MultiHeadAttention");
    check_sizes<kvjit_spec>("specs[0]", c.spec, kSpecFields, [&](kvjit_spec* spec, kvjit_error* error) {
        return kvjit_engine_prepare(shared_engine(), spec, 1, nullptr, &options, error);
    });
}

TEST_CASE("specs of a list have the size that some header's spec has, and stand that far apart") {
    const std::vector<std::size_t> sizes = sizes_of(kSpecFields);
    kvjit_prepare_options options;
    kvjit_prepare_options_init(&options);
    options.programs = 0;
    kvjit_spec good, bad;
    kvjit_spec_init(&good);
    kvjit_spec_init(&bad);
    bad.head_dim = 65;
    for (std::size_t size = 0; size <= sizeof(kvjit_spec) + 8; ++size) {
        CAPTURE(size);
        const std::size_t used = std::min(size, sizeof good);
        GuardedBuffer memory((2 * size + 7) / 8 * 8, Guard::kAfter);
        char* const first = static_cast<char*>(static_cast<void*>(memory.data()));
        good.struct_size = bad.struct_size = static_cast<std::uint32_t>(size);
        std::memcpy(first, &good, used);
        std::memcpy(first + size, &bad, used);
        kvjit_error error = new_error();
        const kvjit_status status = kvjit_engine_prepare_sized(
            shared_engine(), reinterpret_cast<const kvjit_spec*>(first), 2, nullptr, &options, size, &error);
        if (std::ranges::find(sizes, size) == sizes.end()) {
            CHECK(status == KVJIT_BAD_ARGUMENT);
            CHECK(error.argument == std::string("spec_size"));
            CHECK(error.value == static_cast<std::int64_t>(size));
            CHECK(error.limit == sizeof(kvjit_spec));
        } else if (size < offsetof(kvjit_spec, head_dim) + sizeof good.head_dim) {
            CHECK(status == KVJIT_OK);  // the second has the default
        } else {
            CHECK(status == KVJIT_BAD_SPEC);
            CHECK(error.argument == std::string("specs[1]"));
            CHECK(error.value == 1);
        }
    }
}

TEST_CASE("a spec of a list has no more bytes than the list's specs stand apart") {
    const std::size_t apart = offsetof(kvjit_spec, group) + sizeof(kvjit_spec::group);
    kvjit_prepare_options options;
    kvjit_prepare_options_init(&options);
    options.programs = 0;
    kvjit_spec whole;
    kvjit_spec_init(&whole);
    GuardedBuffer memory((apart + 7) / 8 * 8, Guard::kAfter);
    std::memcpy(memory.data(), &whole, apart);
    kvjit_error error = new_error();
    CHECK(kvjit_engine_prepare_sized(shared_engine(), reinterpret_cast<const kvjit_spec*>(memory.data()), 1, nullptr,
                                     &options, apart, &error) == KVJIT_BAD_ARGUMENT);
    CHECK(error.argument == std::string("specs[0].struct_size"));
    CHECK(error.value == sizeof(kvjit_spec));
    CHECK(error.limit == static_cast<std::int64_t>(apart));
}

TEST_CASE("a spec is parsed into a struct that ends where a field ends, or not at all") {
    const std::vector<std::size_t> sizes = sizes_of(kSpecFields);
    for (std::size_t size = sizeof(std::uint32_t); size <= sizeof(kvjit_spec); ++size) {
        CAPTURE(size);
        kvjit_spec spec;
        std::memset(static_cast<void*>(&spec), 0x5a, sizeof spec);
        const kvjit_spec before = spec;
        const bool taken = std::ranges::find(sizes, size) != sizes.end();
        // op and head_dim are the defaults: every header has room for them.
        const kvjit_status status = kvjit_spec_parse_sized("group=1", &spec, size, nullptr);
        CHECK((status == KVJIT_OK) == taken);
        CHECK((std::memcmp(&spec, &before, sizeof spec) != 0) == taken);
    }
}

TEST_CASE("an image is told in a struct that ends where a field ends, or not at all") {
    const std::vector<std::size_t> sizes = sizes_of(kImageFields);
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    const Handle<kvjit_kernel> kernel = kernel_of(spec);
    for (std::size_t size = 0; size <= sizeof(kvjit_image_info) + 8; ++size) {
        CAPTURE(size);
        std::uint32_t told = 0;
        const auto take = [](void* context, const kvjit_image_info* info) {
            *static_cast<std::uint32_t*>(context) = info->struct_size;
        };
        kvjit_error error = new_error();
        const auto status = kvjit_kernel_images_sized(kernel.get(), KVJIT_PROGRAM_STORE, take, &told, size, &error);
        const bool taken = std::ranges::find(sizes, size) != sizes.end();
        CHECK(status == (taken ? KVJIT_OK : KVJIT_BAD_ARGUMENT));
        CHECK(told == (taken ? size : 0));
        if (taken) continue;
        CHECK(error.argument == std::string("info.struct_size"));
        CHECK(error.limit == sizeof(kvjit_image_info));
    }
}

TEST_CASE("counts of runs are told in a struct that ends where a field ends, or not at all") {
    const std::vector<std::size_t> sizes = sizes_of(kRunStatsFields);
    const auto take = [](void*, const char*, const char*, const kvjit_run_stats*) {};
    for (std::size_t size = 0; size <= sizeof(kvjit_run_stats) + 8; ++size) {
        CAPTURE(size);
        kvjit_error error;
        kvjit_error_init(&error);
        const auto status = kvjit_engine_run_stats_sized(shared_engine(), take, nullptr, size, &error);
        const bool taken = std::ranges::find(sizes, size) != sizes.end();
        CHECK(status == (taken ? KVJIT_OK : KVJIT_BAD_ARGUMENT));
        if (!taken) CHECK(error.argument == std::string("stats.struct_size"));
    }
    CHECK(kvjit_engine_run_stats(nullptr, take, nullptr, nullptr) == KVJIT_BAD_ARGUMENT);
    CHECK(kvjit_engine_run_stats(shared_engine(), nullptr, nullptr, nullptr) == KVJIT_BAD_ARGUMENT);
}

TEST_CASE("statistics are written to whole fields only") {
    const std::vector<std::size_t> sizes = sizes_of(kStatsFields);
    for (std::size_t size = 0; size <= sizeof(kvjit_engine_stats) + 8; ++size) {
        CAPTURE(size);
        kvjit_engine_stats stats;
        std::memset(&stats, 0x5a, sizeof stats);
        stats.struct_size = static_cast<std::uint32_t>(size);
        const kvjit_engine_stats before = stats;
        kvjit_engine_get_stats(shared_engine(), &stats);
        // A newer header's struct is longer: this library fills what it knows.
        const bool written = size >= sizeof stats || (size > 8 && std::ranges::find(sizes, size) != sizes.end());
        CHECK((std::memcmp(&stats, &before, sizeof stats) != 0) == written);
    }
}

}  // namespace
}  // namespace kvjit::test
