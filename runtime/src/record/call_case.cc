#include "record/call_case.h"

#include <charconv>
#include <cstring>

#include "batch/batch_view.h"
#include "c_struct.h"
#include "check/arithmetic.h"
#include "check/fault.h"
#include "generator/operator.h"
#include "record/case_fields.h"

namespace kvjit::rt {
namespace {

using gen::OperatorTensor;
using gen::TensorUse;

/// A tensor that takes more than this many times its elements' bytes is recorded dense.
constexpr std::int64_t kMostSpread = 4;

std::string joined(std::string_view prefix, std::string_view name) {
    return std::string(prefix).append(name);
}

std::string list_of(const std::vector<std::int64_t>& numbers, std::int64_t divisor) {
    std::string text;
    for (const std::int64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number / divisor);
    return text;
}

bool is_cache(const OperatorTensor& tensor) {
    return tensor.use == TensorUse::kCache || tensor.use == TensorUse::kScale;
}
bool is_result(const OperatorTensor& tensor) {
    return tensor.use == TensorUse::kOutput || tensor.use == TensorUse::kOutputOpt;
}

/// Index of the axis of new tokens (S) or of keys (K); -1: the tensor has none.
int row_axis(const OperatorTensor& tensor, const kvjit_tensor& given, char letter) {
    if (tensor.use == TensorUse::kMask) return letter == 'S' ? given.rank - 2 : -1;
    const std::size_t at = tensor.axes.find(letter);
    return at == tensor.axes.npos ? -1 : static_cast<int>(at);
}

}  // namespace

CallCase::CallCase(const HostBatch& host, const kvjit_tensors& tensors, std::int64_t layer_idx)
    : host_(&host), tensors_(&tensors), layer_idx_(layer_idx), stores_(tensors.current_key.rank != 0) {}

std::expected<CallCase, std::string> CallCase::make(const HostBatch& host, const CasePlan& plan,
                                                    const kvjit_tensors& tensors, std::int64_t layer_idx) {
    CallCase call(host, tensors, layer_idx);
    if (gen::has_cache(host.spec())) call.slots_ = find_slots(host, !plan.stores_nothing);
    call.set_metadata(plan);
    call.add_arrays();
    if (gen::has_cache(host.spec())) call.add_tables();
    if (auto added = call.add_tensors(); !added) return std::unexpected(added.error());
    if (gen::has_cache(host.spec()) && !gen::has_cache_tensors(host.spec())) call.add_blocks();
    call.declare();
    return call;
}

/// Numbers that have kvjit_batch's default are left out.
void CallCase::set_metadata(const CasePlan& plan) {
    const kvjit_batch& given = host_->batch();
    kvjit_batch batch = given;
    const gen::KernelSpec& spec = host_->spec();
    const auto extent = static_cast<std::int64_t>(slots_.places.size());
    if (gen::has_num_blocks(spec)) batch.num_blocks = extent;
    if (gen::has_max_tokens(spec)) {
        batch.max_tokens =
            spec.cache_mode == KVJIT_SEQUENCE_TABLE ? std::max<std::int64_t>(slots_.block_tokens, 1) : extent;
    }
    const auto defaults = rt::defaults<kvjit_batch>();
    for (const auto& number : record::kCounts) {
        if (batch.*number.member != defaults.*number.member) {
            file_.set(std::string(number.name), std::to_string(batch.*number.member));
        }
        if (batch.*number.member != given.*number.member) {
            file_.set(joined(record::kRemark, number.name), std::to_string(given.*number.member));
        }
    }
    for (const auto& number : record::kFractions) {
        if (batch.*number.member != 0) file_.set(std::string(number.name), text(batch.*number.member));
    }
    file_.set("format", std::string(record::kFormat));
    file_.set("spec", gen::print_spec(spec));
    file_.set("kvjit", KVJIT_VERSION);
    file_.set("target", plan.target);
    if (plan.stores_nothing) file_.set("stores_nothing", "1");
    if (plan.split_keys != 0) file_.set("split_keys", std::to_string(plan.split_keys));
    if (plan.prefill_split_keys != 0) file_.set("prefill_split_keys", std::to_string(plan.prefill_split_keys));
    if (slots_.renumbered) file_.set(joined(record::kRemark, "renumbered"), "1");
    if (!gen::has_cache(spec)) return;
    file_.set(joined(record::kRemark, "layer_idx"), std::to_string(layer_idx_));
    file_.set(joined(record::kRemark, "num_layers"), std::to_string(given.num_layers));
}

void CallCase::add_arrays() {
    const auto type = static_cast<kvjit_dtype>(host_->spec().starts_type);
    const auto element = static_cast<std::size_t>(gen::dtype_bytes(type));
    for (const record::BatchArray& array : record::kArrays) {
        std::vector<std::byte> bytes = host_->bytes(array.name);
        if (bytes.empty() && array.name == "seqstarts") bytes.resize(element);  // no sequence: 0
        if (bytes.empty()) continue;
        Gather from = Gather::of(kvjit_tensor_contiguous(
            nullptr, type, 1, std::vector{static_cast<std::int64_t>(bytes.size() / element)}.data()));
        inputs_.push_back({std::string(array.name), type, std::move(from), std::move(bytes)});
    }
    if (host_->slopes().empty()) return;
    const auto heads = static_cast<std::int64_t>(host_->slopes().size());
    std::vector<std::byte> bytes(host_->slopes().size() * sizeof(float));
    std::memcpy(bytes.data(), host_->slopes().data(), bytes.size());
    inputs_.push_back({"alibi_slopes", KVJIT_F32, Gather::of(kvjit_tensor_contiguous(nullptr, KVJIT_F32, 1, &heads)),
                       std::move(bytes)});
}

/// `like`: the caller's table of this layer, whose type and shape the recorded one has.
void CallCase::add_table(std::string_view name, const kvjit_tensor& like, const std::vector<std::int64_t>& entries) {
    if (like.rank == 0 || host_->bytes(name).empty()) return;
    kvjit_tensor shape = like;
    if (like.rank == 1) shape.shape[0] = static_cast<std::int64_t>(entries.size());
    const auto type = static_cast<kvjit_dtype>(like.dtype);
    const bool narrow = type == KVJIT_I32;
    std::vector<std::byte> bytes(entries.size() * (narrow ? 4 : 8));
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const auto small = static_cast<std::int32_t>(entries[i]);
        if (narrow) std::memcpy(bytes.data() + 4 * i, &small, sizeof small);
        if (!narrow) std::memcpy(bytes.data() + 8 * i, &entries[i], sizeof entries[i]);
    }
    if (slots_.renumbered) {
        inputs_.push_back({joined(record::kRemark, name), type, Gather::of(like), host_->bytes(name)});
    }
    inputs_.push_back({std::string(name), type, Gather::of(shape), std::move(bytes)});
}

void CallCase::add_tables() {
    const kvjit_batch& batch = host_->batch();
    add_table("cachestarts", batch.cachestarts, slots_.entries);
    add_table("scalestarts", batch.scalestarts, slots_.scale_entries);
    if (!slots_.store_slots.empty()) add_table("store_slots", batch.store_slots, slots_.store_slots);
}

/// A block_pointers cache: no tensor of the call has it.
void CallCase::add_blocks() {
    const BatchView view = batch_view(host_->spec(), host_->batch(), true);
    const int layer = gen::axes_of(gen::layout_axes(host_->spec())).find('L');
    const auto add = [&](std::string_view name, const kvjit_tensor& block, const std::vector<std::int64_t>& places) {
        if (block.rank == 0) return;
        std::vector<std::int64_t> addresses;
        for (const std::int64_t place : places) addresses.push_back(place);
        Gather from = Gather::of_blocks(block, std::move(addresses));
        if (layer >= 0) from.keep(layer + 1, layer_idx_);
        const auto type = static_cast<kvjit_dtype>(block.dtype);
        inputs_.push_back({std::string(name), type, from, {}});
        if (stores_) results_.push_back({joined(record::kGot, name), type, std::move(from), {}});
    };
    add(record::kBlocks, view.cache.code_block(), slots_.places);
    add(record::kScaleBlocks, view.cache.scale_block(), slots_.scales);
}

std::expected<void, std::string> CallCase::add_tensors() {
    for (const OperatorTensor& tensor : gen::operator_of(host_->spec()).tensors) {
        const kvjit_tensor& given = tensors_->*tensor.member;
        if (given.rank == 0) continue;
        const auto type = static_cast<kvjit_dtype>(given.dtype);
        const std::string name(tensor.name), got = joined(record::kGot, tensor.name);
        std::expected<Gather, std::string> from = is_cache(tensor) ? cache_part(tensor) : rows_of(tensor);
        if (!from) return std::unexpected(from.error());
        set_strides(name, *from, element_bytes(given), !is_cache(tensor) || !slots_.renumbered);
        if (is_result(tensor) || (is_cache(tensor) && stores_)) results_.push_back({got, type, *from, {}});
        if (!is_result(tensor)) inputs_.push_back({name, type, *std::move(from), {}});
    }
    return {};
}

/// Without the rows that no sequence has.
std::expected<Gather, std::string> CallCase::rows_of(const OperatorTensor& tensor) const {
    const kvjit_tensor& given = tensors_->*tensor.member;
    Gather from = Gather::of(given);
    for (const auto& [letter, rows] : {std::pair{'S', query_rows(host_->spec(), host_->batch())},
                                       std::pair{'K', key_rows(host_->spec(), host_->batch())}}) {
        const int axis = row_axis(tensor, given, letter);
        if (axis < 0) continue;
        if (given.shape[axis] < rows) {
            return std::unexpected(
                text(tensor.name, ".shape[", axis, "] is ", given.shape[axis], "; the batch's arrays have ", rows));
        }
        from.crop(axis, rows);
    }
    return from;
}

/// The slots that the call refers to, in its layer.
Gather CallCase::cache_part(const OperatorTensor& tensor) const {
    const gen::KernelSpec& spec = host_->spec();
    const bool values = tensor.part == gen::Part::kValue;
    const gen::Axes axes = gen::axes_of(values ? gen::value_axes(spec) : gen::layout_axes(spec));
    Gather from = Gather::of(tensors_->*tensor.member);
    if (axes.has('L')) from.keep(axes.find('L'), layer_idx_);
    if (spec.cache_mode == KVJIT_SEQUENCE_TABLE) {
        from.crop(axes.find('T'), std::max<std::int64_t>(slots_.block_tokens, 1));
    }
    from.pick(axes.find(gen::has_num_blocks(spec) ? 'N' : 'T'), slots_.places);
    return from;
}

void CallCase::set_strides(const std::string& name, const Gather& from, std::int64_t element_bytes, bool may_keep) {
    std::int64_t dense = element_bytes, spread = element_bytes;
    bool is_dense = true, is_positive = true;
    for (std::size_t axis = from.shape().size(); axis-- > 0;) {
        const std::int64_t extent = from.shape()[axis], stride = from.byte_strides()[axis];
        if (extent == 0) return;
        is_dense = is_dense && (extent == 1 || stride == dense);
        is_positive = is_positive && stride >= 0;
        if (is_positive) spread = saturating_sum(spread, saturating_product(extent - 1, stride));
        dense = saturating_product(dense, extent);
    }
    if (is_dense) return;
    const bool keeps = may_keep && is_positive && spread / kMostSpread <= dense;
    const std::string strides = joined(record::kStrides, name);
    file_.set(keeps ? strides : joined(record::kRemark, strides), list_of(from.byte_strides(), element_bytes));
}

void CallCase::declare() {
    for (const auto* pieces : {&inputs_, &results_}) {
        for (const Piece& piece : *pieces) file_.add(piece.name, piece.dtype, piece.from.shape());
    }
}

gen::Result<void> CallCase::read(Plan& plan, const std::vector<Piece>& pieces, std::string& to) {
    for (const Piece& piece : pieces) {
        const std::size_t begin = to.size();
        to.resize(begin + static_cast<std::size_t>(piece.from.bytes()));
        auto* at = reinterpret_cast<std::byte*>(to.data() + begin);
        if (!piece.bytes.empty()) {
            std::memcpy(at, piece.bytes.data(), piece.bytes.size());
        } else if (auto read = piece.from.read(plan, at); !read) {
            return read;
        }
    }
    return {};
}

gen::Result<void> CallCase::read_inputs(Plan& plan, std::string& to) const {
    to.reserve(static_cast<std::size_t>(bytes()));
    to += file_.header();
    return read(plan, inputs_, to);
}

gen::Result<void> CallCase::read_results(Plan& plan, std::string& to) const {
    return read(plan, results_, to);
}

}  // namespace kvjit::rt
