// KsanaLLM's cache, and Ascend ATB's on the same memory, as views of kvjit: header-only, C++17.
//
// A block of KsanaLLM is (2, L, block_tokens, Hkv, D): the keys of all layers, then the values. In one region blocks
// lie behind one another, block b at base + b * block_bytes. ATB sees the same bytes as pieces of one layer's
// block_tokens tokens, (num_blocks * 2 * L, block_tokens, Hkv, D), twice:
//
//     kcache = base                                     piece b*2L + l holds the keys of block b, layer l
//     vcache = base + L * block_tokens * Hkv * D        elements; the same piece of it holds the values
//
// so that one id table serves both: block b is ATB's b*2L + l. No function here moves a byte of a cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "kvjit/kvjit.hpp"

namespace kvjit::interop {

/// What a pool's blocks hold besides what the spec says (head_dim, page_size: tokens a block, types, quantisation).
struct KsanaExtents {
    std::int64_t num_layers = 1;
    std::int64_t num_kv_heads = 1;
    /// Where each block begins, and both halves that ATB sees: at multiples of so many bytes. A power of two; CUDA
    /// kernels want 16 at least.
    std::int64_t alignment = 16;
};

/// Ways to reach a pool. One plan serves all layers of a step, and a run is told the layer. ATB's ids and slots are a
/// layer's own, so with kAtb and kAtbSlots that takes a table for each layer, (L, B, MaxP) or (L, K), in a batch whose
/// num_layers is L (KsanaArrays makes such). With one layer's table num_layers is 1, and a run is told layer 0.
enum class KsanaView {
    kPointers,  ///< addresses of blocks: cache_mode=block_pointers, layout=2LTHD (to_pointers)
    kPool,      ///< numbers of blocks of one tensor: cache_mode=block_table, layout=N2LTHD
    kAtb,       ///< ATB's ids in two tensors, of keys and of values: cache_mode=block_table, layout=NTHD (to_atb)
    kAtbSlots,  ///< a slot of these for each token, id * block_tokens + token: cache_mode=token_table, layout=THD
};

/// A region of the caller's.
struct KsanaRegion {
    void* base = nullptr;
    std::int64_t bytes = 0;
};

/// A table with a row for each sequence, int32 or int64 entries; `Entry` may be const. Entries that are kNoEntry stand
/// behind a row's end.
template <class Entry>
struct KsanaTable {
    Entry* entries = nullptr;
    std::int64_t rows = 0, columns = 0;
    std::int64_t stride = 0;  ///< entries from a row to the next, at least `columns`

    KsanaTable(Entry* first, std::int64_t row_count, std::int64_t column_count)
        : KsanaTable(first, row_count, column_count, column_count) {}
    KsanaTable(Entry* first, std::int64_t row_count, std::int64_t column_count, std::int64_t row_stride)
        : entries(first), rows(row_count), columns(column_count), stride(row_stride) {}
    Entry& at(std::int64_t row, std::int64_t column) const { return entries[row * stride + column]; }
};

/// Of ids and of addresses alike.
inline constexpr std::int64_t kNoEntry = -1;

/// What ATB takes, with scales where the cache is quantised (else null): `num_pieces` pieces of (block_tokens, Hkv, D)
/// from each base. Of those that begin at vcache the last num_layers lie behind the pool; no id of to_atb is theirs.
struct AtbCaches {
    void* kcache = nullptr;
    void* vcache = nullptr;
    void* kscale = nullptr;
    void* vscale = nullptr;
    std::int64_t num_pieces = 0;
};

namespace detail {

using kvjit::detail::refusal;

struct KsanaFree {
    std::align_val_t alignment{16};
    void operator()(char* memory) const { ::operator delete(memory, alignment); }
};

/// False: the product doesn't fit. Neither is negative.
inline bool ksana_multiply(std::int64_t& product, std::int64_t factor) {
    if (factor != 0 && product > std::numeric_limits<std::int64_t>::max() / factor) return false;
    product *= factor;
    return true;
}

inline std::int64_t ksana_bytes(kvjit_dtype type) {
    return type == KVJIT_F32 ? 4 : type == KVJIT_F16 ? 2 : 1;
}

/// Of an entry of a table, in the row of a sequence.
inline Error ksana_refusal(const char* name, std::int64_t row, std::int64_t column, std::int64_t entry,
                           std::int64_t limit, const std::string& says) {
    const std::string place = std::string(name) + "[" + std::to_string(row) + ", " + std::to_string(column) + "]";
    const std::string message =
        place + " is " + std::to_string(entry) + "; " + says + " (sequence " + std::to_string(row) + ")";
    Error error(KVJIT_BAD_INDEX, name, message.c_str(), entry, limit);
    error.get()->sequence = row;
    return error;
}

template <class From, class To>
Result<void> check_ksana_tables(const char* name, const KsanaTable<From>& from, const KsanaTable<To>& to) {
    const bool empty = from.rows == 0 || from.columns == 0;
    if (from.rows < 0 || from.columns < 0 || from.stride < from.columns || (from.entries == nullptr && !empty))
        return refusal(KVJIT_BAD_ARGUMENT, name, from.stride, from.columns,
                       "the stride of its rows; a table has rows and columns, a stride of at least its columns, "
                       "and entries that are not null");
    if (to.rows != from.rows || to.columns != from.columns || to.stride < to.columns ||
        (to.entries == nullptr && !empty))
        return refusal(KVJIT_BAD_SHAPE, "to", to.rows, from.rows,
                       "its rows; it takes the rows and columns of the table that it is made from, a stride of at "
                       "least its columns, and entries that are not null");
    return {};
}

/// Makes each entry what `map` says; kNoEntry stays. Nothing is written where one is refused. Both may be one table.
template <class From, class To, class Map>
Result<void> convert_ksana_table(const char* name, const KsanaTable<From>& from, const KsanaTable<To>& to,
                                 const Map& map) {
    if (Result<void> tables = check_ksana_tables(name, from, to); !tables) return tables;
    constexpr std::int64_t most = std::numeric_limits<To>::max();
    for (std::int64_t row = 0; row < from.rows; ++row) {
        for (std::int64_t column = 0; column < from.columns; ++column) {
            const std::int64_t entry = from.at(row, column);
            if (entry == kNoEntry) continue;
            if (!map.allows(entry)) return ksana_refusal(name, row, column, entry, map.limit(), map.rule());
            if (map(entry) <= most) continue;
            return ksana_refusal(name, row, column, entry, most,
                                 "it becomes " + std::to_string(map(entry)) + ", and the other table's type holds " +
                                     std::to_string(most) + " at most");
        }
    }
    for (std::int64_t row = 0; row < from.rows; ++row) {
        for (std::int64_t column = 0; column < from.columns; ++column) {
            const std::int64_t entry = from.at(row, column);
            to.at(row, column) = static_cast<To>(entry == kNoEntry ? kNoEntry : map(entry));
        }
    }
    return {};
}

struct ToAtb {
    std::int64_t num_blocks, pieces, layer;  // pieces of a block: 2L

    bool allows(std::int64_t block) const { return block >= 0 && block < num_blocks; }
    std::int64_t operator()(std::int64_t block) const { return block * pieces + layer; }
    std::int64_t limit() const { return num_blocks; }
    std::string rule() const {
        return "it takes numbers of blocks, below " + std::to_string(num_blocks) +
               ", whose ATB id the other table's type holds, or -1";
    }
};

struct FromAtb {
    std::int64_t num_blocks, pieces, layer;

    bool allows(std::int64_t id) const { return id >= 0 && id / pieces < num_blocks && id % pieces == layer; }
    std::int64_t operator()(std::int64_t id) const { return id / pieces; }
    std::int64_t limit() const { return num_blocks * pieces; }
    std::string rule() const {
        return "it takes ATB ids of layer " + std::to_string(layer) + ", b * " + std::to_string(pieces) + " + " +
               std::to_string(layer) + " below " + std::to_string(limit()) + ", or -1";
    }
};

struct ToPointers {
    std::int64_t num_blocks, base, block_bytes;

    bool allows(std::int64_t block) const { return block >= 0 && block < num_blocks; }
    std::int64_t operator()(std::int64_t block) const { return base + block * block_bytes; }
    std::int64_t limit() const { return num_blocks; }
    std::string rule() const { return "it takes numbers of blocks, below " + std::to_string(num_blocks) + ", or -1"; }
};

struct FromPointers {
    std::int64_t num_blocks, base, block_bytes;

    bool allows(std::int64_t address) const {
        const std::int64_t bytes = address >= base ? address - base : -1;
        return bytes >= 0 && bytes % block_bytes == 0 && bytes / block_bytes < num_blocks;
    }
    std::int64_t operator()(std::int64_t address) const { return (address - base) / block_bytes; }
    std::int64_t limit() const { return block_bytes; }
    std::string rule() const {
        return "it takes addresses of the pool's " + std::to_string(num_blocks) + " blocks, " +
               std::to_string(block_bytes) + " bytes apart, or -1";
    }
};

}  // namespace detail

/// Blocks of KsanaLLM in one region, and of their scales in another where the cache is quantised. The region is the
/// caller's, who keeps it longer than the pool, or the pool's own. Move-only. What is const is thread-safe; blocks are
/// taken and released by one thread at a time.
class KsanaPool {
public:
    /// Over the caller's memory, of the host or of a device (nothing here reads it): as many blocks as it holds, all of
    /// them free. The engine may have an allocator of its own and ignore the pool's.
    /// `spec`: of an operator with a cache; its head_dim, page_size, t1, t2, t3, quant_bit and quant_group count, its
    /// layout and cache_mode don't. `scales`: where quant_bit isn't 0, room for as many blocks.
    /// Errors: KVJIT_BAD_SPEC; KVJIT_BAD_ARGUMENT: an extent below 1, blocks whose bytes don't fit 64 bits, a region
    /// that is null, misaligned or no multiple of a block, blocks that don't begin at multiples of the alignment;
    /// KVJIT_OUT_OF_MEMORY.
    static Result<KsanaPool> wrap(const kvjit_spec& spec, const KsanaExtents& extents, KsanaRegion codes,
                                  KsanaRegion scales = {}) {
        KsanaPool pool;
        if (Result<void> measured = pool.measure(spec, extents); !measured) return measured.error();
        if (Result<void> region = pool.check_region("codes", codes, pool.block_bytes_); !region) return region.error();
        pool.num_blocks_ = codes.bytes / pool.block_bytes_;
        pool.codes_ = static_cast<char*>(codes.base);
        if (Result<void> taken = pool.take_scales(scales); !taken) return taken.error();
        if (Result<void> freed = pool.free_all(); !freed) return freed.error();
        return pool;
    }

    /// Over memory of the host that the pool allocates, and doesn't initialise: kernels read no token that wasn't
    /// stored. Errors: as wrap.
    static Result<KsanaPool> allocate(const kvjit_spec& spec, const KsanaExtents& extents, std::int64_t num_blocks) {
        KsanaPool measured;
        if (Result<void> legal = measured.measure(spec, extents); !legal) return legal.error();
        if (num_blocks < 1)
            return detail::refusal(KVJIT_BAD_ARGUMENT, "num_blocks", num_blocks, 1, "it takes at least 1");
        std::int64_t bytes = measured.block_bytes_, scale_bytes = measured.scale_block_bytes_;
        if (!detail::ksana_multiply(bytes, num_blocks) || !detail::ksana_multiply(scale_bytes, num_blocks))
            return too_large("num_blocks", num_blocks, bytes);
        Memory codes = memory(bytes, extents.alignment), scales = memory(scale_bytes, extents.alignment);
        if (codes == nullptr || (scale_bytes != 0 && scales == nullptr))
            return detail::refusal(KVJIT_OUT_OF_MEMORY, "num_blocks", num_blocks, 0,
                                   "there is no memory for so many blocks");
        Result<KsanaPool> pool = wrap(spec, extents, {codes.get(), bytes}, {scales.get(), scale_bytes});
        if (pool) pool->own_ = std::move(codes), pool->own_scales_ = std::move(scales);
        return pool;
    }

    std::int64_t num_blocks() const { return num_blocks_; }
    std::int64_t num_layers() const { return extents_.num_layers; }
    std::int64_t block_bytes() const { return block_bytes_; }
    std::int64_t scale_block_bytes() const { return scale_block_bytes_; }  ///< 0: the cache isn't quantised
    void* codes() const { return codes_; }
    void* scales() const { return scales_; }

    // ---- Blocks ----------------------------------------------------------------------------------------------------

    std::int64_t num_free() const { return num_free_; }

    /// Takes `count` free blocks and writes their numbers: all of them, or none. Allocates nothing.
    /// Errors: KVJIT_BAD_ARGUMENT: a negative count, fewer free blocks, null.
    Result<void> take(std::int64_t* blocks, std::int64_t count) {
        if (count < 0 || count > num_free() || (blocks == nullptr && count != 0))
            return detail::refusal(KVJIT_BAD_ARGUMENT, "count", count, num_free(),
                                   "so many blocks are free: " + std::to_string(num_free()) +
                                       "; their numbers go to an array that is not null");
        for (std::int64_t i = 0; i < count; ++i) {
            blocks[i] = free_[--num_free_];
            taken_[blocks[i]] = kTaken;
        }
        return {};
    }

    /// One block.
    Result<std::int64_t> take() {
        std::int64_t block = 0;
        if (Result<void> taken = take(&block, 1); !taken) return taken.error();
        return block;
    }

    /// Gives blocks back: all of them, or none. Allocates nothing.
    /// Errors: KVJIT_BAD_ARGUMENT: null, a count below 0; KVJIT_BAD_INDEX: a number that is no block's, a block that
    /// isn't taken or stands there twice.
    Result<void> release(const std::int64_t* blocks, std::int64_t count) {
        if (count < 0 || (blocks == nullptr && count != 0))
            return detail::refusal(KVJIT_BAD_ARGUMENT, "count", count, 0,
                                   "blocks are counted from 0 on; their numbers come in an array that is not null");
        for (std::int64_t i = 0; i < count; ++i) {
            const bool inside = blocks[i] >= 0 && blocks[i] < num_blocks_;
            if (inside && taken_[blocks[i]] == kTaken) {
                taken_[blocks[i]] = kSeen;  // until all have been looked at
                continue;
            }
            for (std::int64_t j = 0; j < i; ++j) taken_[blocks[j]] = kTaken;
            const std::string says =
                inside ? "the block is not taken, or stands there twice" : "the pool has no such block";
            return detail::refusal(KVJIT_BAD_INDEX, "blocks", blocks[i], num_blocks_, says);
        }
        for (std::int64_t i = 0; i < count; ++i) {
            taken_[blocks[i]] = kFree;
            free_[num_free_++] = blocks[i];
        }
        return {};
    }
    Result<void> release(std::int64_t block) { return release(&block, 1); }

    // ---- Views -----------------------------------------------------------------------------------------------------

    /// The pool's spec with the view's layout and cache_mode; block_pointers have 64-bit entries.
    /// Errors: KVJIT_BAD_ARGUMENT: kAtb or kAtbSlots, and the values' half doesn't begin at a multiple of the
    /// alignment.
    Result<KernelSpec> spec(KsanaView view) const {
        if (Result<void> halves = check_halves(view); !halves) return halves.error();
        KernelSpec spec = spec_;  // cache_mode=block_table, layout=N2LTHD
        if (view == KsanaView::kPointers) {
            spec.cache_mode = KVJIT_BLOCK_POINTERS;
            spec.index_type = KVJIT_I64;
            spec.set_layout("2LTHD");
        } else if (view == KsanaView::kAtb) {
            spec.set_layout("NTHD");
        } else if (view == KsanaView::kAtbSlots) {
            spec.cache_mode = KVJIT_TOKEN_TABLE;
            spec.page_size = KernelSpec().page_size;  // it has no use for one
            spec.set_layout("THD");
        }
        return spec;
    }

    /// Sets num_layers, with kAtb and kAtbSlots to 1, num_kv_heads, num_blocks and max_tokens; the rest of the batch is
    /// the caller's.
    void set_extents(KsanaView view, kvjit_batch& batch) const {
        batch.num_layers = is_atb(view) ? 1 : extents_.num_layers;
        batch.num_kv_heads = extents_.num_kv_heads;
        batch.num_blocks = view == KsanaView::kPool ? num_blocks_ : view == KsanaView::kAtb ? whole_pieces() : 0;
        batch.max_tokens = view == KsanaView::kAtbSlots ? atb_slots() : 0;
    }

    /// Sets the tensors of the cache and of its scales, with kPointers to none. Of the pieces that ATB sees they have
    /// those whose keys and values both lie in the pool, so that kvjit refuses ids of others.
    /// Errors: as spec.
    Result<void> set_tensors(KsanaView view, kvjit_tensors& tensors) const {
        if (Result<void> halves = check_halves(view); !halves) return halves;
        tensors.cache = tensors.scale = tensors.key_cache = tensors.value_cache = Tensor();
        tensors.key_scale = tensors.value_scale = Tensor();
        if (view == KsanaView::kPool) {
            tensors.cache = pool_tensor(codes_, code_type_, code_row_);
            if (scales_ != nullptr) tensors.scale = pool_tensor(scales_, scale_type_, scale_row_);
        } else if (is_atb(view)) {
            tensors.key_cache = atb_tensor(view, codes_, code_type_, code_row_);
            tensors.value_cache = atb_tensor(view, codes_ + block_bytes_ / 2, code_type_, code_row_);
            if (scales_ == nullptr) return {};
            tensors.key_scale = atb_tensor(view, scales_, scale_type_, scale_row_);
            tensors.value_scale = atb_tensor(view, scales_ + scale_block_bytes_ / 2, scale_type_, scale_row_);
        }
        return {};
    }

    /// What an ATB operator is given. Errors: as spec.
    Result<AtbCaches> atb_caches() const {
        if (Result<void> halves = check_halves(KsanaView::kAtb); !halves) return halves.error();
        AtbCaches caches;
        caches.kcache = codes_;
        caches.vcache = codes_ + block_bytes_ / 2;
        caches.num_pieces = num_blocks_ * block_pieces();
        if (scales_ == nullptr) return caches;
        caches.kscale = scales_;
        caches.vscale = scales_ + scale_block_bytes_ / 2;
        return caches;
    }

    /// ATB's pieces in a block, 2L: ids of a layer are this far apart.
    std::int64_t block_pieces() const { return 2 * extents_.num_layers; }

private:
    using Memory = std::unique_ptr<char, detail::KsanaFree>;
    enum Taken : unsigned char { kFree, kTaken, kSeen };

    KsanaPool() = default;

    static Memory memory(std::int64_t bytes, std::int64_t alignment) {
        const std::align_val_t aligned{static_cast<std::size_t>(alignment < 16 ? 16 : alignment)};
        if (bytes == 0) return Memory(nullptr, detail::KsanaFree{aligned});
        return Memory(static_cast<char*>(::operator new(static_cast<std::size_t>(bytes), aligned, std::nothrow)),
                      detail::KsanaFree{aligned});
    }

    static Error too_large(const char* argument, std::int64_t value, std::int64_t limit) {
        return detail::refusal(KVJIT_BAD_ARGUMENT, argument, value, limit, "the blocks' bytes have to fit 64 bits");
    }

    /// What a block takes.
    Result<void> measure(const kvjit_spec& spec, const KsanaExtents& extents) {
        static_cast<kvjit_spec&>(spec_) = spec;
        extents_ = extents;
        for (char& letter : spec_.value_layout) letter = '\0';
        spec_.cache_mode = KVJIT_BLOCK_TABLE;
        spec_.set_layout("N2LTHD");
        if (spec_.op != KVJIT_OP_KEY_VALUE_CACHE && spec_.op != KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION)
            return detail::refusal(KVJIT_BAD_SPEC, "op", spec_.op, 0, "it takes an operator with a cache");
        Result<KernelSpec> legal = spec_.for_op(static_cast<kvjit_op>(spec_.op));
        if (!legal) return legal.error();
        spec_ = *legal;
        if (Result<void> fine = check_extents(); !fine) return fine;
        set_rows();
        return measure_blocks();
    }

    Result<void> check_extents() const {
        const struct {
            const char* name;
            std::int64_t value;
        } extents[] = {{"num_layers", extents_.num_layers},
                       {"num_kv_heads", extents_.num_kv_heads},
                       {"alignment", extents_.alignment}};
        for (const auto& [name, value] : extents) {
            if (value < 1) return detail::refusal(KVJIT_BAD_ARGUMENT, name, value, 1, "it takes at least 1");
        }
        if ((extents_.alignment & (extents_.alignment - 1)) == 0) return {};
        return detail::refusal(KVJIT_BAD_ARGUMENT, "alignment", extents_.alignment, 0, "it takes powers of two");
    }

    /// Types and elements of a head's row. The spec is legal.
    void set_rows() {
        const auto resolved = [&](std::int32_t type) {
            return static_cast<kvjit_dtype>(type == KVJIT_AUTO ? spec_.t1 : type);
        };
        const bool quantised = spec_.quant_bit != 0;
        code_type_ = spec_.quant_bit == 8 ? KVJIT_I8 : spec_.quant_bit == 4 ? KVJIT_U8 : resolved(spec_.t2);
        code_row_ = spec_.quant_bit == 4 ? spec_.head_dim / 2 : spec_.head_dim;
        scale_type_ = resolved(spec_.t3);
        scale_row_ = quantised ? spec_.head_dim / spec_.quant_group : 0;
    }

    Result<void> measure_blocks() {
        block_bytes_ = code_row_ * detail::ksana_bytes(code_type_);
        scale_block_bytes_ = scale_row_ * detail::ksana_bytes(scale_type_);
        for (const std::int64_t factor :
             {std::int64_t{2}, std::int64_t{spec_.page_size}, extents_.num_kv_heads, extents_.num_layers}) {
            if (!detail::ksana_multiply(block_bytes_, factor) || !detail::ksana_multiply(scale_block_bytes_, factor))
                return too_large("num_layers", extents_.num_layers, 0);
        }
        for (const std::int64_t bytes : {block_bytes_, scale_block_bytes_}) {
            if (bytes % extents_.alignment == 0) continue;
            return detail::refusal(KVJIT_BAD_ARGUMENT, "alignment", extents_.alignment, bytes,
                                   "blocks of " + std::to_string(bytes) + " bytes are no multiple of it");
        }
        return {};
    }

    Result<void> check_region(const char* name, KsanaRegion region, std::int64_t block_bytes) const {
        if (region.base == nullptr)
            return Error(KVJIT_BAD_ARGUMENT, name, (std::string(name) + " has a base that is null").c_str());
        const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(region.base) &
                                                    static_cast<std::uintptr_t>(extents_.alignment - 1));
        if (past != 0)
            return detail::refusal(KVJIT_BAD_ARGUMENT, name, past, extents_.alignment,
                                   "so many bytes behind a multiple of " + std::to_string(extents_.alignment) +
                                       ", at which it takes to begin");
        if (region.bytes >= block_bytes && region.bytes % block_bytes == 0) return {};
        return detail::refusal(KVJIT_BAD_ARGUMENT, name, region.bytes, block_bytes,
                               "the bytes of whole blocks are multiples of " + std::to_string(block_bytes));
    }

    Result<void> take_scales(KsanaRegion scales) {
        if (scale_block_bytes_ == 0) {
            if (scales.base == nullptr) return {};
            return Error(KVJIT_BAD_ARGUMENT, "scales", "scales are given; the spec's quant_bit is 0");
        }
        if (Result<void> region = check_region("scales", scales, scale_block_bytes_); !region) return region;
        if (scales.bytes / scale_block_bytes_ != num_blocks_)
            return detail::refusal(KVJIT_BAD_ARGUMENT, "scales", scales.bytes / scale_block_bytes_, num_blocks_,
                                   "so many blocks of scales; of codes there are " + std::to_string(num_blocks_));
        scales_ = static_cast<char*>(scales.base);
        return {};
    }

    /// The first blocks are taken first.
    Result<void> free_all() {
        const auto count = static_cast<std::size_t>(num_blocks_);
        free_.reset(new (std::nothrow) std::int64_t[count]);
        taken_.reset(new (std::nothrow) Taken[count]());
        if (free_ == nullptr || taken_ == nullptr)
            return detail::refusal(KVJIT_OUT_OF_MEMORY, "num_blocks", num_blocks_, 0,
                                   "there is no memory for the list of so many blocks");
        for (std::int64_t block = num_blocks_; block-- > 0;) free_[num_free_++] = block;
        return {};
    }

    static bool is_atb(KsanaView view) { return view == KsanaView::kAtb || view == KsanaView::kAtbSlots; }

    Result<void> check_halves(KsanaView view) const {
        if (!is_atb(view)) return {};
        for (const std::int64_t bytes : {block_bytes_, scale_block_bytes_}) {
            if (bytes / 2 % extents_.alignment == 0) continue;
            return detail::refusal(
                KVJIT_BAD_ARGUMENT, "alignment", extents_.alignment, bytes / 2,
                "values begin " + std::to_string(bytes / 2) + " bytes behind keys, which is no multiple of it");
        }
        return {};
    }

    /// The pieces whose keys and values both lie in the pool.
    std::int64_t whole_pieces() const { return num_blocks_ * block_pieces() - extents_.num_layers; }
    std::int64_t atb_slots() const { return whole_pieces() * spec_.page_size; }

    Tensor pool_tensor(void* base, kvjit_dtype type, std::int64_t row) const {
        return {base, type, {num_blocks_, 2, extents_.num_layers, spec_.page_size, extents_.num_kv_heads, row}};
    }
    Tensor atb_tensor(KsanaView view, void* base, kvjit_dtype type, std::int64_t row) const {
        if (view == KsanaView::kAtbSlots) return {base, type, {atb_slots(), extents_.num_kv_heads, row}};
        return {base, type, {whole_pieces(), spec_.page_size, extents_.num_kv_heads, row}};
    }

    KernelSpec spec_;
    KsanaExtents extents_;
    std::int64_t num_blocks_ = 0, block_bytes_ = 0, scale_block_bytes_ = 0;
    kvjit_dtype code_type_ = KVJIT_AUTO, scale_type_ = KVJIT_AUTO;
    std::int64_t code_row_ = 0, scale_row_ = 0;  // elements
    char* codes_ = nullptr;
    char* scales_ = nullptr;
    std::unique_ptr<std::int64_t[]> free_;  // numbers of free blocks, num_free_ of them
    std::unique_ptr<Taken[]> taken_;        // of each block
    std::int64_t num_free_ = 0;
    Memory own_, own_scales_;
};

// ---- Tables of whole batches ---------------------------------------------------------------------------------------
//
// Each makes a table of another, entry by entry, into the caller's memory; both may be one. Nothing is allocated unless
// there is an error, and then nothing is written. Errors: KVJIT_BAD_INDEX, with the entry and its row as the sequence,
// of one that the pool doesn't have or the other table's type doesn't hold; KVJIT_BAD_ARGUMENT: a layer that the pool
// doesn't have, a table of null; KVJIT_BAD_SHAPE: tables of other extents. Thread-safe.

namespace detail {

inline Result<void> check_ksana_layer(const KsanaPool& pool, std::int64_t layer) {
    if (layer >= 0 && layer < pool.num_layers()) return {};
    return refusal(KVJIT_BAD_ARGUMENT, "layer", layer, pool.num_layers(),
                   "the pool has layers 0 to num_layers - 1, num_layers is " + std::to_string(pool.num_layers()));
}

}  // namespace detail

/// Numbers of blocks to ATB's ids for one layer: b*2L + layer.
template <class From, class To>
Result<void> to_atb(const KsanaPool& pool, const KsanaTable<From>& blocks, std::int64_t layer,
                    const KsanaTable<To>& atb) {
    if (Result<void> inside = detail::check_ksana_layer(pool, layer); !inside) return inside;
    return detail::convert_ksana_table("blocks", blocks, atb,
                                       detail::ToAtb{pool.num_blocks(), pool.block_pieces(), layer});
}

/// ATB's ids of one layer to numbers of blocks.
template <class From, class To>
Result<void> from_atb(const KsanaPool& pool, const KsanaTable<From>& atb, std::int64_t layer,
                      const KsanaTable<To>& blocks) {
    if (Result<void> inside = detail::check_ksana_layer(pool, layer); !inside) return inside;
    return detail::convert_ksana_table("atb", atb, blocks,
                                       detail::FromAtb{pool.num_blocks(), pool.block_pieces(), layer});
}

/// Numbers of blocks to their addresses, as `cachestarts` of kPointers takes them.
template <class From>
Result<void> to_pointers(const KsanaPool& pool, const KsanaTable<From>& blocks,
                         const KsanaTable<std::int64_t>& addresses) {
    const auto base = reinterpret_cast<std::intptr_t>(pool.codes());
    return detail::convert_ksana_table("blocks", blocks, addresses,
                                       detail::ToPointers{pool.num_blocks(), base, pool.block_bytes()});
}

/// The same for their scales, `scalestarts`. Precondition: the pool has some.
template <class From>
Result<void> to_scale_pointers(const KsanaPool& pool, const KsanaTable<From>& blocks,
                               const KsanaTable<std::int64_t>& addresses) {
    const auto base = reinterpret_cast<std::intptr_t>(pool.scales());
    return detail::convert_ksana_table("blocks", blocks, addresses,
                                       detail::ToPointers{pool.num_blocks(), base, pool.scale_block_bytes()});
}

/// Addresses of blocks to their numbers.
template <class From, class To>
Result<void> from_pointers(const KsanaPool& pool, const KsanaTable<From>& addresses, const KsanaTable<To>& blocks) {
    const auto base = reinterpret_cast<std::intptr_t>(pool.codes());
    return detail::convert_ksana_table("addresses", addresses, blocks,
                                       detail::FromPointers{pool.num_blocks(), base, pool.block_bytes()});
}

// ---- KsanaLLM's index arrays ---------------------------------------------------------------------------------------

/// What the spec that a pool is made with needs besides.
inline constexpr const char* kKsanaSpecFields = "index_type=i32,starts_type=i32";

/// The index arrays that KsanaLLM makes of a step for ATB, as they are, under its names: nothing is copied. They are
/// read by every run of a plan, by the GPU on CUDA targets: they stay the engine's, and stay as they are until the plan
/// is released. One plan serves all layers, and a run is told the layer. On CUDA targets seq_len_host lies where the
/// GPU reaches it, too. Thread-safe as any struct of pointers is.
struct KsanaArrays {
    std::int64_t batch_size = 0;                        // B
    std::int64_t num_tokens = 0;                        // S: atb_attention_attr[0]
    std::int64_t max_num_blocks_per_query = 0;          // atb_attention_attr[1]
    const std::int32_t* seqstarts = nullptr;            // (B + 1): where each request's new tokens begin
    const std::int32_t* seq_len_host = nullptr;         // (B): keys, the new tokens among them
    const std::int32_t* layers_slot_mapping = nullptr;  // (L, S): slots of new tokens
    const std::int32_t* layers_block_table = nullptr;   // (L, B, max_num_blocks_per_query): ATB's ids; where all decode
    std::int64_t max_seqlen = 0;  // upper bounds; 0: unknown, which CUDA plans without a mirror refuse
    std::int64_t max_kvlen = 0;

    /// A batch of pool.spec(kAtb), by layers_block_table. Numbers that don't fit are refused where a plan is made.
    Batch batch(const KsanaPool& pool) const {
        Batch batch = batch_of(pool, KsanaView::kAtb);
        batch.kvlens = seq_len_host;
        batch.cachestarts =
            Tensor(layers_block_table, KVJIT_I32, {pool.num_layers(), batch_size, max_num_blocks_per_query});
        if (layers_slot_mapping != nullptr)
            batch.store_slots = Tensor(layers_slot_mapping, KVJIT_I32, {pool.num_layers(), num_tokens});
        return batch;
    }

    /// A batch of pool.spec(kAtbSlots), by layers_slot_mapping alone, which is all that KsanaLLM makes for prompts:
    /// each request has no keys but its new tokens.
    Batch prompts(const KsanaPool& pool) const {
        Batch batch = batch_of(pool, KsanaView::kAtbSlots);
        batch.kvstarts = seqstarts;
        batch.cachestarts = Tensor(layers_slot_mapping, KVJIT_I32, {pool.num_layers(), num_tokens});
        return batch;
    }

private:
    Batch batch_of(const KsanaPool& pool, KsanaView view) const {
        Batch batch;
        pool.set_extents(view, batch);
        batch.num_layers = pool.num_layers();
        batch.batch_size = batch_size;
        batch.max_seqlen = max_seqlen;
        batch.max_kvlen = max_kvlen;
        batch.seqstarts = seqstarts;
        return batch;
    }
};

}  // namespace kvjit::interop
