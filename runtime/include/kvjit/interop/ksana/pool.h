// KsanaLLM's blocks in one region, and the ways to reach them. Part of kvjit/interop/ksana.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "kvjit/interop/ksana/blocks.h"
#include "kvjit/interop/ksana/format.h"

namespace kvjit::interop {

/// A region of the caller's.
struct KsanaRegion {
    void* base = nullptr;
    std::int64_t bytes = 0;
};

/// What ATB takes, with scales where the cache is quantised (else null): `num_pieces` pieces of (block_tokens, Hkv, D)
/// from each base. Of those that begin at vcache the last num_layers lie past the pool; no id of to_atb is theirs.
struct AtbCaches {
    void* kcache = nullptr;
    void* vcache = nullptr;
    void* kscale = nullptr;
    void* vscale = nullptr;
    std::int64_t num_pieces = 0;
};

namespace detail {

struct KsanaFree {
    std::align_val_t alignment{16};
    void operator()(char* memory) const { ::operator delete(memory, alignment); }
};

}  // namespace detail

/// Blocks of KsanaLLM in one region, and of their scales in another where the cache is quantised. The region is the
/// caller's, who keeps it longer than the pool, or the pool's own.
class KsanaPool : public KsanaBlocks {
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
        auto format = detail::KsanaFormat::of(spec, extents);
        if (!format) return format.error();
        KsanaPool pool(*format);
        if (Result<void> region = pool.check_region("codes", codes, format->codes); !region) return region.error();
        const std::int64_t count = codes.bytes / format->codes.block_bytes;
        pool.codes_ = static_cast<char*>(codes.base);
        if (Result<void> taken = pool.take_scales(scales, count); !taken) return taken.error();
        if (Result<void> freed = pool.free_all(count); !freed) return freed.error();
        return pool;
    }

    /// Over memory of the host that the pool allocates, and doesn't initialise: kernels read no token that wasn't
    /// stored. Errors: as wrap.
    static Result<KsanaPool> allocate(const kvjit_spec& spec, const KsanaExtents& extents, std::int64_t num_blocks) {
        const auto format = detail::KsanaFormat::of(spec, extents);
        if (!format) return format.error();
        if (num_blocks < 1)
            return detail::refusal(KVJIT_BAD_ARGUMENT, "num_blocks", num_blocks, 1, "it takes at least 1");
        std::int64_t bytes = format->codes.block_bytes, scale_bytes = format->scales.block_bytes;
        if (!detail::ksana_multiply(bytes, num_blocks) || !detail::ksana_multiply(scale_bytes, num_blocks))
            return detail::KsanaFormat::too_large("num_blocks", num_blocks, bytes);
        Memory codes = memory(bytes, extents.alignment), scales = memory(scale_bytes, extents.alignment);
        if (codes == nullptr || (scale_bytes != 0 && scales == nullptr))
            return detail::refusal(KVJIT_OUT_OF_MEMORY, "num_blocks", num_blocks, 0,
                                   "there is no memory for so many blocks");
        Result<KsanaPool> pool = wrap(spec, extents, {codes.get(), bytes}, {scales.get(), scale_bytes});
        if (pool) pool->own_ = std::move(codes), pool->own_scales_ = std::move(scales);
        return pool;
    }

    std::int64_t num_layers() const { return format_.extents.num_layers; }
    std::int64_t block_bytes() const { return format_.codes.block_bytes; }
    std::int64_t scale_block_bytes() const { return format_.scales.block_bytes; }  ///< 0: the cache isn't quantised
    void* codes() const { return codes_; }
    void* scales() const { return scales_; }

    /// The pool's spec with the view's layout and cache_mode; block_pointers have 64-bit entries.
    /// Errors: KVJIT_BAD_ARGUMENT: kAtb or kAtbSlots, and the values' half doesn't begin at a multiple of the
    /// alignment.
    Result<KernelSpec> spec(KsanaView view) const {
        if (Result<void> halves = check_halves(view); !halves) return halves.error();
        KernelSpec spec = format_.spec;  // cache_mode=block_table, layout=N2LTHD
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
        batch.num_layers = is_atb(view) ? 1 : format_.extents.num_layers;
        batch.num_kv_heads = format_.extents.num_kv_heads;
        batch.num_blocks = view == KsanaView::kPool ? num_blocks() : view == KsanaView::kAtb ? whole_pieces() : 0;
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
            tensors.cache = pool_tensor(codes_, format_.codes);
            if (scales_ != nullptr) tensors.scale = pool_tensor(scales_, format_.scales);
        } else if (is_atb(view)) {
            tensors.key_cache = atb_tensor(view, codes_, format_.codes);
            tensors.value_cache = atb_tensor(view, codes_ + block_bytes() / 2, format_.codes);
            if (scales_ == nullptr) return {};
            tensors.key_scale = atb_tensor(view, scales_, format_.scales);
            tensors.value_scale = atb_tensor(view, scales_ + scale_block_bytes() / 2, format_.scales);
        }
        return {};
    }

    /// What an ATB operator is given. Errors: as spec.
    Result<AtbCaches> atb_caches() const {
        if (Result<void> halves = check_halves(KsanaView::kAtb); !halves) return halves.error();
        AtbCaches caches;
        caches.kcache = codes_;
        caches.vcache = codes_ + block_bytes() / 2;
        caches.num_pieces = num_blocks() * block_pieces();
        if (scales_ == nullptr) return caches;
        caches.kscale = scales_;
        caches.vscale = scales_ + scale_block_bytes() / 2;
        return caches;
    }

    /// ATB's pieces in a block, 2L: ids of a layer are this far apart.
    std::int64_t block_pieces() const { return 2 * format_.extents.num_layers; }

private:
    using Memory = std::unique_ptr<char, detail::KsanaFree>;

    explicit KsanaPool(const detail::KsanaFormat& format) : format_(format) {}

    static Memory memory(std::int64_t bytes, std::int64_t alignment) {
        const std::align_val_t aligned{static_cast<std::size_t>(alignment < 16 ? 16 : alignment)};
        if (bytes == 0) return Memory(nullptr, detail::KsanaFree{aligned});
        return Memory(static_cast<char*>(::operator new(static_cast<std::size_t>(bytes), aligned, std::nothrow)),
                      detail::KsanaFree{aligned});
    }

    Result<void> check_region(const char* name, KsanaRegion region, const detail::KsanaPlane& plane) const {
        const std::int64_t alignment = format_.extents.alignment, block_bytes = plane.block_bytes;
        if (region.base == nullptr)
            return Error(KVJIT_BAD_ARGUMENT, name, (std::string(name) + " has a base that is null").c_str());
        const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(region.base) &
                                                    static_cast<std::uintptr_t>(alignment - 1));
        if (past != 0)
            return detail::refusal(
                KVJIT_BAD_ARGUMENT, name, past, alignment,
                "so many bytes past a multiple of " + std::to_string(alignment) + ", at which it takes to begin");
        if (region.bytes >= block_bytes && region.bytes % block_bytes == 0) return {};
        return detail::refusal(KVJIT_BAD_ARGUMENT, name, region.bytes, block_bytes,
                               "the bytes of whole blocks are multiples of " + std::to_string(block_bytes));
    }

    Result<void> take_scales(KsanaRegion scales, std::int64_t count) {
        if (scale_block_bytes() == 0) {
            if (scales.base == nullptr) return {};
            return Error(KVJIT_BAD_ARGUMENT, "scales", "scales are given; the spec's quant_bit is 0");
        }
        if (Result<void> region = check_region("scales", scales, format_.scales); !region) return region;
        if (scales.bytes / scale_block_bytes() != count)
            return detail::refusal(KVJIT_BAD_ARGUMENT, "scales", scales.bytes / scale_block_bytes(), count,
                                   "so many blocks of scales; of codes there are " + std::to_string(count));
        scales_ = static_cast<char*>(scales.base);
        return {};
    }

    static bool is_atb(KsanaView view) { return view == KsanaView::kAtb || view == KsanaView::kAtbSlots; }
    Result<void> check_halves(KsanaView view) const { return is_atb(view) ? format_.check_halves() : Result<void>(); }

    /// The pieces whose keys and values both lie in the pool.
    std::int64_t whole_pieces() const { return num_blocks() * block_pieces() - num_layers(); }
    std::int64_t atb_slots() const { return whole_pieces() * format_.spec.page_size; }

    Tensor pool_tensor(void* base, const detail::KsanaPlane& plane) const {
        return {base,
                plane.type,
                {num_blocks(), 2, num_layers(), format_.spec.page_size, format_.extents.num_kv_heads, plane.row}};
    }
    Tensor atb_tensor(KsanaView view, void* base, const detail::KsanaPlane& plane) const {
        const std::int64_t heads = format_.extents.num_kv_heads;
        if (view == KsanaView::kAtbSlots) return {base, plane.type, {atb_slots(), heads, plane.row}};
        return {base, plane.type, {whole_pieces(), format_.spec.page_size, heads, plane.row}};
    }

    detail::KsanaFormat format_;
    char* codes_ = nullptr;
    char* scales_ = nullptr;
    Memory own_, own_scales_;
};

}  // namespace kvjit::interop
