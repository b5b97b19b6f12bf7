#include "record/host_batch.h"

#include <cstring>

#include "batch/batch_view.h"
#include "generator/element_type.h"
#include "record/case_fields.h"
#include "record/gather.h"

namespace kvjit::rt {
namespace {

std::int64_t bytes_of(std::int32_t dtype) {
    return gen::dtype_bytes(static_cast<kvjit_dtype>(dtype));
}

}  // namespace

gen::Result<HostBatch> HostBatch::copy(Plan& plan, const gen::KernelSpec& spec, const kvjit_batch& batch,
                                       const std::vector<float>& slopes, std::int64_t layer_idx) {
    HostBatch host;
    host.spec_ = spec;
    host.batch_ = batch;
    host.slopes_ = slopes;
    host.batch_.alibi_slopes = nullptr;
    if (batch.batch_size == 0) return host;
    for (const record::BatchArray& array : record::kArrays) {
        const bool counts = gen::has_keys(spec) || array.name == "seqstarts";
        const void* given = counts ? batch.*array.member : nullptr;
        if (given == nullptr) continue;
        if (auto done = host.copy_array(plan, array.name, given, batch.batch_size + array.more); !done) {
            return std::unexpected(done.error());
        }
        host.batch_.*array.member = host.bytes(array.name).data();
    }
    if (!gen::has_cache(spec)) return host;
    for (const record::BatchTable& table : record::kTables) {
        const int rank = table.name == "store_slots" ? 1 : table_rank(spec, batch);
        if (auto done = host.copy_table(plan, table.name, host.batch_.*table.member, rank, layer_idx); !done) {
            return std::unexpected(done.error());
        }
    }
    return host;
}

const std::vector<std::byte>& HostBatch::bytes(std::string_view name) const {
    static const std::vector<std::byte> none;
    const auto found = copies_.find(name);
    return found == copies_.end() ? none : found->second;
}

std::vector<std::int64_t> HostBatch::entries(std::string_view name) const {
    for (const record::BatchTable& table : record::kTables) {
        if (table.name != name) continue;
        const abi::Indices elements{bytes(name).data(), (batch_.*table.member).dtype == KVJIT_I32};
        std::vector<std::int64_t> read(bytes(name).size() / static_cast<std::size_t>(elements.narrow ? 4 : 8));
        for (std::size_t i = 0; i < read.size(); ++i) read[i] = index_at(elements, static_cast<std::int64_t>(i));
        return read;
    }
    return {};
}

gen::Result<void> HostBatch::copy_array(Plan& plan, std::string_view name, const void* array, std::int64_t count) {
    std::vector<std::byte>& to = copies_[name];
    to.resize(static_cast<std::size_t>(count * bytes_of(spec_.starts_type)));
    return plan.download(to.data(), array, to.size());
}

/// The layer's part of a table becomes all of it.
gen::Result<void> HostBatch::copy_table(Plan& plan, std::string_view name, kvjit_tensor& table, int rank,
                                        std::int64_t layer) {
    if (table.rank == 0) return {};
    Gather from = Gather::of(table);
    if (table.rank > rank) from.select(0, layer);
    std::vector<std::byte>& to = copies_[name];
    to.resize(static_cast<std::size_t>(from.bytes()));
    const std::int64_t* extents = table.shape + (table.rank > rank ? 1 : 0);
    if (auto read = from.read(plan, to.data()); !read) return read;
    table = kvjit_tensor_contiguous(to.data(), static_cast<kvjit_dtype>(table.dtype), rank,
                                    std::vector<std::int64_t>(extents, extents + rank).data());
    return {};
}

}  // namespace kvjit::rt
