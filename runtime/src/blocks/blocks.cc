#include "blocks/blocks.h"

#include <initializer_list>

#include "blocks/gpu.h"
#include "blocks/host.h"
#include "check/arithmetic.h"
#include "check/check_options.h"
#include "check/fault.h"

namespace kvjit::rt {
namespace {

using gen::Result;

/// The caches of a call and the ids of their blocks, all of them checked.
struct Call {
    BlockCache first, second;
    std::vector<BlockShare> shares;
    bool is_one;  // both are the same cache
};

Result<Call> read_call(const kvjit_blocks* first, std::string_view first_name, bool first_written,
                       const kvjit_blocks* second, std::string_view second_name) {
    Result<BlockCache> a = read_cache(first, first_name, first_written);
    if (!a) return std::unexpected(a.error());
    Result<BlockCache> b = read_cache(second, second_name, true);
    if (!b) return std::unexpected(b.error());
    Result<std::vector<BlockShare>> shares = pair_caches(*a, *b);
    if (!shares) return std::unexpected(shares.error());
    const Result<bool> one = is_one_cache(*a, *b);
    if (!one) return std::unexpected(one.error());
    return Call{*std::move(a), *std::move(b), *std::move(shares), *one};
}

/// One cache for both sides.
Result<Call> read_call(const kvjit_blocks* blocks, std::string_view name) {
    Result<BlockCache> cache = read_cache(blocks, name, true);
    if (!cache) return std::unexpected(cache.error());
    Result<std::vector<BlockShare>> shares = pair_caches(*cache, *cache);
    if (!shares) return std::unexpected(shares.error());
    return Call{*cache, *cache, *std::move(shares), true};
}

Result<void> check_count(const Call& call, std::int64_t count) {
    const std::int64_t arrays = call.first.has_scale_ids() || call.second.has_scale_ids() ? 2 : 1;
    const std::int64_t most = kMaxInt64 / static_cast<std::int64_t>(sizeof(std::int64_t)) / arrays;
    if (count >= 0 && count <= most) return {};
    return refuse(KVJIT_BAD_ARGUMENT, "count", count, count < 0 ? 0 : most, text("it takes 0 to ", most));
}

Result<void> check_how(const Call& call, const kvjit_blocks_options& options) {
    if (auto workers = check_workers(options.executor, options.num_threads, options.spin_us); !workers) return workers;
    const bool on_host = call.first.memory == KVJIT_MEMORY_HOST && call.second.memory == KVJIT_MEMORY_HOST;
    const char* cuda_given = options.stream != nullptr ? "stream" : options.device != 0 ? "device" : nullptr;
    const char* given = on_host ? cuda_given : worker_option(options);
    if (given == nullptr) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, given,
                     text(given, " is given; ", on_host ? "all blocks are in host memory" : "the GPU's driver copies"));
}

Result<void> move(const Call& call, std::span<const BlockWork> works, const kvjit_blocks_options& options) {
    if (call.first.memory == KVJIT_MEMORY_HOST && call.second.memory == KVJIT_MEMORY_HOST) {
        return move_on_host(works, options);
    }
    const Result<GpuBlocks*> gpu = gpu_blocks(options.device);
    if (!gpu) return std::unexpected(gpu.error());
    return (*gpu)->move(works, call.first.memory, call.second.memory, options.stream);
}

/// The same order for all shares of the blocks.
Result<void> move(const Call& call, const BlockIds& first, const BlockIds& second, const Order* order,
                  const kvjit_blocks_options& options) {
    std::vector<BlockWork> works;
    for (const BlockShare& share : call.shares) {
        works.push_back({share, first.of(share.first), second.of(share.second), order});
    }
    return move(call, works, options);
}

/// One side's ids, as the caller gave them, under the argument's name.
struct GivenIds {
    const std::int64_t* ids;
    std::string_view name;
};

/// The ids of both sides.
struct Ids {
    BlockIds first, second;
};

Result<Ids> read_both(const Call& call, BlockUse first_use, const GivenIds& first, const GivenIds& second,
                      std::int64_t count) {
    if (auto right = check_count(call, count); !right) return std::unexpected(right.error());
    const Result<BlockIds> a = read_ids(call.first, first_use, first.ids, count, first.name);
    if (!a) return std::unexpected(a.error());
    const Result<BlockIds> b = read_ids(call.second, BlockUse::kWritten, second.ids, count, second.name);
    if (!b) return std::unexpected(b.error());
    return Ids{*a, *b};
}

/// Checks that blocks of different caches don't overlap.
Result<void> check_both_apart(const Call& call, const Ids& ids, bool in_order) {
    const BlockIds both[] = {ids.first, ids.second};
    if (call.is_one) return check_apart(both, in_order);
    for (const BlockIds& each : both) {
        if (auto apart = check_apart({&each, 1}, in_order); !apart) return apart;
    }
    return {};
}

/// Codes and scales with ids of their own are moved in orders of their own.
Result<void> move_in_order(const Call& call, const Ids& ids, const kvjit_blocks_options& options) {
    const Order codes = move_order(ids.first.codes, ids.second.codes);
    const Order scales = move_order(ids.first.scales, ids.second.scales);
    std::vector<BlockWork> works;
    for (const BlockShare& share : call.shares) {
        const bool own = share.first.scales && call.first.has_scale_ids();
        works.push_back({share, ids.first.of(share.first), ids.second.of(share.second), own ? &scales : &codes});
    }
    return move(call, works, options);
}

/// The common part of operations on two arrays of ids: checks everything, then calls `do_it(call, ids)`. in_order: as
/// if one block were moved after the other.
template <class Do>
Result<void> with_pairs(const Result<Call>& call, BlockUse first_use, const GivenIds& first, const GivenIds& second,
                        std::int64_t count, bool in_order, const kvjit_blocks_options& options, Do&& do_it) {
    if (!call) return std::unexpected(call.error());
    if (auto how = check_how(*call, options); !how) return how;
    const Result<Ids> ids = read_both(*call, first_use, first, second, count);
    if (!ids) return std::unexpected(ids.error());
    if (auto apart = check_both_apart(*call, *ids, in_order); !apart) return apart;
    return do_it(*call, *ids);
}

}  // namespace

Result<void> copy_blocks(const kvjit_blocks* from, const kvjit_blocks* to, const std::int64_t* from_ids,
                         const std::int64_t* to_ids, std::int64_t count, const kvjit_blocks_options& options) {
    return with_pairs(read_call(from, "from", false, to, "to"), BlockUse::kRead, {from_ids, "from_ids"},
                      {to_ids, "to_ids"}, count, false, options, [&](const Call& call, const Ids& ids) {
                          const Order order = copy_order(count);
                          return move(call, ids.first, ids.second, &order, options);
                      });
}

Result<void> move_blocks(const kvjit_blocks* blocks, const std::int64_t* from_ids, const std::int64_t* to_ids,
                         std::int64_t count, const kvjit_blocks_options& options) {
    return with_pairs(read_call(blocks, "blocks"), BlockUse::kRead, {from_ids, "from_ids"}, {to_ids, "to_ids"}, count,
                      true, options,
                      [&](const Call& call, const Ids& ids) { return move_in_order(call, ids, options); });
}

Result<void> swap_blocks(const kvjit_blocks* a, const kvjit_blocks* b, const std::int64_t* a_ids,
                         const std::int64_t* b_ids, std::int64_t count, const kvjit_blocks_options& options) {
    return with_pairs(read_call(a, "a", true, b, "b"), BlockUse::kWritten, {a_ids, "a_ids"}, {b_ids, "b_ids"}, count,
                      false, options, [&](const Call& call, const Ids& ids) {
                          const Order order = swap_order(count);
                          return move(call, ids.first, ids.second, &order, options);
                      });
}

Result<void> zero_blocks(const kvjit_blocks* blocks, const std::int64_t* ids, std::int64_t count,
                         const kvjit_blocks_options& options) {
    const Result<Call> call = read_call(blocks, "blocks");
    if (!call) return std::unexpected(call.error());
    if (auto how = check_how(*call, options); !how) return how;
    if (auto right = check_count(*call, count); !right) return right;
    const Result<BlockIds> read = read_ids(call->second, BlockUse::kWritten, ids, count, "ids");
    if (!read) return std::unexpected(read.error());
    if (auto apart = check_apart({&*read, 1}, false); !apart) return apart;
    return move(*call, *read, *read, nullptr, options);
}

}  // namespace kvjit::rt
