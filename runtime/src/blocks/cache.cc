#include "blocks/cache.h"

#include <algorithm>
#include <utility>

#include "batch/batch_view.h"
#include "c_struct.h"
#include "check/check_batch.h"
#include "check/check_tensors.h"
#include "check/fault.h"

namespace kvjit::rt {
namespace {

using gen::Result;

// ---- Reading ------------------------------------------------------------------------------------------------------

/// An error of a check that knows only the struct in `where`. No plan's options can be named: there is no plan.
gen::Error inside(std::string_view where, gen::Error error) {
    if (error.message.ends_with(kIfStored)) error.message.resize(error.message.size() - kIfStored.size());
    error.argument = text(where, error.argument);
    error.message = text(where, error.message);
    return error;
}

std::unexpected<gen::Error> not_yet(std::string argument, std::string_view what) {
    std::string message = text(argument, ": ", what, "; this version of kvjit has no blocks of it yet");
    return gen::fail(KVJIT_BAD_SPEC, std::move(argument), std::move(message));
}

/// The spec of an operator with a cache that has blocks.
Result<gen::KernelSpec> read_spec(const kvjit_spec* given, const std::string& name) {
    const Result<gen::KernelSpec> spec = read_struct(given, name);
    if (!spec) return std::unexpected(spec.error());
    if (auto valid = gen::validate_spec(*spec); !valid) return std::unexpected(inside(name + ".", valid.error()));
    if (!gen::has_cache(*spec) || gen::is_relayout(*spec)) {
        return gen::fail(KVJIT_BAD_SPEC, name + ".op",
                         text(name, ".op is ", op_name(*spec), "; it takes KeyValueCache or MultiHeadCacheAttention"));
    }
    if (spec->value_head_dim != 0 && spec->value_head_dim != spec->head_dim) {
        return not_yet(name + ".value_head_dim", "values have another head_dim than keys");
    }
    return spec;
}

/// The numbers that a cache has, and no others. `callers`: the spec that gives the query heads of a kv head.
Result<kvjit_batch> read_sizes(const kvjit_batch* given, const std::string& name, const gen::KernelSpec& callers,
                               const gen::KernelSpec& spec) {
    const Result<kvjit_batch> batch = read_struct(given, name);
    if (!batch) return std::unexpected(batch.error());
    if (batch->num_kv_heads == 0 && gen::has_query_heads(callers)) {
        auto whole = check_whole_groups(callers, batch->num_heads, name + ".num_heads");
        if (!whole) return std::unexpected(whole.error());
    }
    kvjit_batch sizes = defaults<kvjit_batch>();
    sizes.num_kv_heads = kv_heads(callers, *batch);
    sizes.num_layers = batch->num_layers;
    sizes.max_tokens = batch->max_tokens;
    sizes.num_blocks = batch->num_blocks;
    auto right = check_batch_scalars(spec, sizes, {.level = KVJIT_CHECK_NONE});
    if (!right) return std::unexpected(inside(name + ".", right.error()));
    return sizes;
}

/// Without the tensors that only an engine's call has.
kvjit_tensors cache_tensors(const kvjit_tensors& all) {
    kvjit_tensors tensors = defaults<kvjit_tensors>();
    for (const gen::OperatorTensor& each : gen::cache_tensors()) tensors.*each.member = all.*each.member;
    return tensors;
}

Result<kvjit_tensors> read_tensors(const kvjit_tensors* given, const std::string& name, const BatchView& view) {
    const bool needed = gen::has_cache_tensors(view.spec);
    const Result<kvjit_tensors> read = needed ? read_struct(given, name) : read_optional_struct(given, name);
    if (!read) return std::unexpected(read.error());
    const kvjit_tensors tensors = cache_tensors(*read);
    if (auto right = check_tensors(view, {}, tensors, 0); !right) {
        return std::unexpected(inside(name + ".", right.error()));
    }
    return tensors;
}

/// The call's batch, without the tensors. The operator is the one that takes a cache and nothing else; spec fields that
/// it doesn't use are not checked here.
Result<BatchView> read_view(const kvjit_blocks& blocks, std::string_view name, bool written) {
    const Result<gen::KernelSpec> callers = read_spec(blocks.spec, text(name, ".spec"));
    if (!callers) return std::unexpected(callers.error());
    gen::KernelSpec spec = *callers;
    spec.op = KVJIT_OP_KEY_VALUE_CACHE;
    const Result<kvjit_batch> sizes = read_sizes(blocks.batch, text(name, ".batch"), *callers, spec);
    if (!sizes) return std::unexpected(sizes.error());
    BatchView view = batch_view(spec, *sizes, written);
    view.batch_size = 1;  // a call without sequences needs no cache
    return view;
}

// ---- Where blocks lie ---------------------------------------------------------------------------------------------

/// The elements, or tokens, of the whole axis that a step along this part of it spans.
std::int64_t weight_of(const gen::Axes& axes, char letter) {
    const char inner = letter == 'T' ? 't' : letter == 'D' ? 'd' : ' ';
    return axes.has(inner) ? axes.extent(inner) : 1;
}

/// Tokens of a block where ids are tokens.
std::int64_t page_of(const CacheView& cache) {
    return std::max<std::int64_t>(1, cache.paging().page);
}

/// `layout`: the tensor's. `page`: tokens of a block where ids are tokens, else 0.
BlockPlane plane_of(const kvjit_tensor& tensor, const gen::Axes& layout, std::int64_t page) {
    const std::int64_t bytes = element_bytes(tensor);
    BlockPlane plane{{}, gen::Part::kBoth, false, reinterpret_cast<std::intptr_t>(tensor.data), 1, {}};
    plane.axes.push_back({'B', 1, bytes, 1});
    int i = 0;
    for (const char letter : layout.order()) {
        const std::int64_t extent = tensor.shape[i], stride = tensor.strides[i] * bytes;
        const std::int64_t weight = weight_of(layout, letter);
        ++i;
        if (letter == 'N' || (page != 0 && letter == 'T')) plane.stride = stride;
        if (letter == 'N') continue;
        const char axis = letter == 'd' ? 'D' : letter == 't' ? 'T' : letter;
        const std::int64_t most = page != 0 && axis == 'T' ? std::max<std::int64_t>(1, page / weight) : extent;
        plane.axes.push_back({axis, weight, std::min(extent, most), stride});
    }
    return plane;
}

/// Dense blocks at addresses, as tensors at address 0.
kvjit_tensors block_tensors(const CacheView& cache, bool quantised) {
    kvjit_tensors tensors{};
    tensors.cache = cache.code_block();
    if (quantised) tensors.scale = cache.scale_block();
    return tensors;
}

std::vector<BlockPlane> planes_of(const BatchView& view, const kvjit_tensors& tensors) {
    const gen::KernelSpec& spec = view.spec;
    const std::int64_t page = view.cache.paging().blocks() ? 0 : page_of(view.cache);
    std::vector<BlockPlane> planes;
    for (const gen::OperatorTensor& each : gen::cache_tensors()) {
        const kvjit_tensor& tensor = tensors.*each.member;
        if (tensor.rank == 0) continue;
        const std::string_view layout = each.part == gen::Part::kValue ? gen::value_axes(spec) : gen::layout_axes(spec);
        planes.push_back(plane_of(tensor, gen::axes_of(layout), page));
        planes.back().tensor = each.name;
        planes.back().part = each.part;
        planes.back().scales = each.use == gen::TensorUse::kScale;
    }
    return planes;
}

// ---- Two caches ---------------------------------------------------------------------------------------------------

struct Property {
    std::string_view name;
    std::int64_t (*of)(const BlockCache& cache);
};
constexpr Property kFormat[] = {
    {"spec.quant_bit", [](const BlockCache& c) { return std::int64_t{c.spec.quant_bit}; }},
    {"spec.quant_group",
     [](const BlockCache& c) { return std::int64_t{c.spec.quant_bit != 0 ? c.spec.quant_group : 0}; }},
    {"spec.head_dim", [](const BlockCache& c) { return std::int64_t{c.spec.head_dim}; }},
    {"batch.num_kv_heads", [](const BlockCache& c) { return c.heads; }},
    {"batch.num_layers", [](const BlockCache& c) { return c.layers; }},
};

Result<void> check_types(const BlockCache& first, const BlockCache& second, std::string_view field,
                         kvjit_dtype (*type)(const gen::KernelSpec&)) {
    const kvjit_dtype wanted = type(first.spec), given = type(second.spec);
    if (wanted == given) return {};
    return gen::fail(KVJIT_BAD_DTYPE, text(second.name, ".spec.", field),
                     text(second.name, ".spec.", field, " is ", gen::dtype_name(given), "; blocks of ", first.name,
                          " have ", gen::dtype_name(wanted)),
                     given, wanted);
}

Result<void> check_tokens(const BlockCache& first, const BlockCache& second) {
    if (first.tokens == second.tokens) return {};
    const std::string_view field = gen::is_paged(second.spec) ? ".spec.page_size" : ".batch.max_tokens";
    return refuse(
        KVJIT_BAD_ARGUMENT, text(second.name, field), second.tokens, first.tokens,
        text("blocks of ", first.name, " have ", first.tokens, " tokens, and those of ", second.name, " as many"));
}

Result<void> check_format(const BlockCache& first, const BlockCache& second) {
    for (const Property& property : kFormat) {
        const std::int64_t wanted = property.of(first), given = property.of(second);
        if (wanted == given) continue;
        return refuse(KVJIT_BAD_ARGUMENT, text(second.name, ".", property.name), given, wanted,
                      text("blocks of ", first.name, " have ", wanted));
    }
    if (auto codes = check_types(first, second, "t2", gen::cache_type); !codes) return codes;
    if (first.spec.quant_bit != 0) {
        if (auto scales = check_types(first, second, "t3", gen::scale_type); !scales) return scales;
    }
    return check_tokens(first, second);
}

/// Keys and values of one tensor as if each had a tensor of its own.
std::vector<BlockPlane> apart(const std::vector<BlockPlane>& planes) {
    std::vector<BlockPlane> all;
    for (const BlockPlane& plane : planes) {
        const auto parts = std::ranges::find(plane.axes, '2', &BlockAxis::axis);
        if (parts == plane.axes.end()) {
            all.push_back(plane);
            continue;
        }
        for (const gen::Part part : {gen::Part::kKey, gen::Part::kValue}) {
            all.push_back(plane);
            all.back().part = part;
            if (part == gen::Part::kValue) all.back().begin += parts->stride;
            std::erase_if(all.back().axes, [](const BlockAxis& axis) { return axis.axis == '2'; });
        }
    }
    return all;
}

bool is_apart(const BlockCache& cache) {
    return cache.planes.front().part != gen::Part::kBoth;
}

}  // namespace

bool BlockPlane::is_same(const BlockPlane& other) const {
    return begin == other.begin && stride == other.stride && axes == other.axes;
}

Result<BlockCache> read_cache(const kvjit_blocks* given, std::string_view name, bool written) {
    const Result<kvjit_blocks> blocks = read_struct(given, name);
    if (!blocks) return std::unexpected(blocks.error());
    if (blocks->memory != KVJIT_MEMORY_HOST && blocks->memory != KVJIT_MEMORY_CUDA) {
        return refuse(KVJIT_BAD_ARGUMENT, text(name, ".memory"), blocks->memory, KVJIT_MEMORY_CUDA,
                      "it takes 0 (KVJIT_MEMORY_HOST) or 1 (KVJIT_MEMORY_CUDA)");
    }
    const Result<BatchView> view = read_view(*blocks, name, written);
    if (!view) return std::unexpected(view.error());
    Result<kvjit_tensors> tensors = read_tensors(blocks->tensors, text(name, ".tensors"), *view);
    if (!tensors) return std::unexpected(tensors.error());
    const CacheView& cache = view->cache;
    const bool addresses = cache.paging().entries == abi::Entries::kAddresses;
    if (addresses) tensors = block_tensors(cache, view->spec.quant_bit != 0);
    return BlockCache{.name = std::string(name),
                      .memory = static_cast<kvjit_memory>(blocks->memory),
                      .spec = view->spec,
                      .entries = cache.paging().entries,
                      .ids = addresses ? 0 : cache.num_slots(),
                      .layers = cache.num_layers(),
                      .heads = view->num_kv_heads,
                      .tokens = cache.paging().blocks() ? cache.block_tokens() : page_of(cache),
                      .planes = planes_of(*view, *tensors)};
}

Result<std::vector<BlockShare>> pair_caches(const BlockCache& first, const BlockCache& second) {
    if (auto equal = check_format(first, second); !equal) return std::unexpected(equal.error());
    const bool whole = !is_apart(first) && !is_apart(second);
    const std::vector<BlockPlane> left = whole ? first.planes : apart(first.planes),
                                  right = whole ? second.planes : apart(second.planes);
    std::vector<BlockShare> shares;
    for (const BlockPlane& plane : left) {
        const auto other = std::ranges::find_if(
            right, [&](const BlockPlane& p) { return p.part == plane.part && p.scales == plane.scales; });
        std::optional<Nest> nest = Nest::pair(plane.axes, other->axes);
        if (!nest) {
            return gen::fail(KVJIT_BAD_ARGUMENT, second.name + ".spec.layout",
                             text(second.name, ".spec.layout splits an axis into pieces that those of ", first.name,
                                  " don't fit into"));
        }
        shares.push_back({plane, *other, *std::move(nest)});
    }
    return shares;
}

Result<bool> is_one_cache(const BlockCache& first, const BlockCache& second) {
    if (first.has_addresses() || second.has_addresses()) return first.has_addresses() == second.has_addresses();
    if (std::ranges::equal(first.planes, second.planes, &BlockPlane::is_same)) return true;
    for (const BlockPlane& a : first.planes) {
        for (const BlockPlane& b : second.planes) {
            if (a.begin != b.begin || a.begin == 0) continue;
            return gen::fail(KVJIT_BAD_ARGUMENT, text(second.name, ".tensors.", b.tensor),
                             text(second.name, ".tensors.", b.tensor, " begins where ", first.name, ".tensors.",
                                  a.tensor, " begins, with other strides; two caches may not overlap"));
        }
    }
    return false;
}

}  // namespace kvjit::rt
