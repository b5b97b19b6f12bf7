// What a block of KsanaLLM holds, and what that takes. Part of kvjit/interop/ksana.h.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

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

namespace detail {

using kvjit::detail::refusal;

/// False: the product doesn't fit. Neither is negative.
inline bool ksana_multiply(std::int64_t& product, std::int64_t factor) {
    if (factor != 0 && product > std::numeric_limits<std::int64_t>::max() / factor) return false;
    product *= factor;
    return true;
}

/// Codes or scales of a block, (2, L, block_tokens, Hkv, row).
struct KsanaPlane {
    kvjit_dtype type = KVJIT_AUTO;
    std::int64_t row = 0;          // elements of a head's; 0: the cache has no scales
    std::int64_t block_bytes = 0;  // of all layers, keys and values
};

/// What a block holds.
struct KsanaFormat {
    KernelSpec spec;  // cache_mode=block_table, layout=N2LTHD
    KsanaExtents extents;
    KsanaPlane codes, scales;

    /// Errors: those of KsanaPool::wrap.
    static Result<KsanaFormat> of(const kvjit_spec& given, const KsanaExtents& extents) {
        KsanaFormat format;
        static_cast<kvjit_spec&>(format.spec) = given;
        format.extents = extents;
        for (char& letter : format.spec.value_layout) letter = '\0';
        format.spec.cache_mode = KVJIT_BLOCK_TABLE;
        format.spec.set_layout("N2LTHD");
        if (given.op != KVJIT_OP_KEY_VALUE_CACHE && given.op != KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION)
            return refusal(KVJIT_BAD_SPEC, "op", given.op, 0, "it takes an operator with a cache");
        Result<KernelSpec> legal = format.spec.for_op(static_cast<kvjit_op>(given.op));
        if (!legal) return legal.error();
        format.spec = *legal;
        if (Result<void> fine = format.check_extents(); !fine) return fine.error();
        format.set_rows();
        if (Result<void> measured = format.measure(); !measured) return measured.error();
        return format;
    }

    static Error too_large(const char* argument, std::int64_t value, std::int64_t limit) {
        return refusal(KVJIT_BAD_ARGUMENT, argument, value, limit, "the blocks' bytes have to fit 64 bits");
    }

    /// ATB's two halves of a block begin at multiples of the alignment.
    Result<void> check_halves() const {
        for (const KsanaPlane& plane : {codes, scales}) {
            const std::int64_t half = plane.block_bytes / 2;
            if (half % extents.alignment == 0) continue;
            return refusal(KVJIT_BAD_ARGUMENT, "alignment", extents.alignment, half,
                           "values begin " + std::to_string(half) + " bytes after keys, which is no multiple of it");
        }
        return {};
    }

private:
    Result<void> check_extents() const {
        const struct {
            const char* name;
            std::int64_t value;
        } named[] = {{"num_layers", extents.num_layers},
                     {"num_kv_heads", extents.num_kv_heads},
                     {"alignment", extents.alignment}};
        for (const auto& [name, value] : named) {
            if (value < 1) return refusal(KVJIT_BAD_ARGUMENT, name, value, 1, "it takes at least 1");
        }
        if ((extents.alignment & (extents.alignment - 1)) == 0) return {};
        return refusal(KVJIT_BAD_ARGUMENT, "alignment", extents.alignment, 0, "it takes powers of two");
    }

    /// Types and elements of a head's row. The spec is legal.
    void set_rows() {
        const auto resolved = [&](std::int32_t type) {
            return static_cast<kvjit_dtype>(type == KVJIT_AUTO ? spec.t1 : type);
        };
        codes.type = spec.quant_bit == 8 ? KVJIT_I8 : spec.quant_bit == 4 ? KVJIT_U8 : resolved(spec.t2);
        codes.row = spec.quant_bit == 4 ? spec.head_dim / 2 : spec.head_dim;
        scales.type = resolved(spec.t3);
        scales.row = spec.quant_bit != 0 ? spec.head_dim / spec.quant_group : 0;
    }

    Result<void> measure() {
        for (KsanaPlane* plane : {&codes, &scales}) {
            plane->block_bytes = plane->row * static_cast<std::int64_t>(kvjit::detail::bytes_of(plane->type));
            for (const std::int64_t factor :
                 {std::int64_t{2}, std::int64_t{spec.page_size}, extents.num_kv_heads, extents.num_layers}) {
                if (!ksana_multiply(plane->block_bytes, factor)) return too_large("num_layers", extents.num_layers, 0);
            }
        }
        for (const KsanaPlane& plane : {codes, scales}) {
            if (plane.block_bytes % extents.alignment == 0) continue;
            return refusal(KVJIT_BAD_ARGUMENT, "alignment", extents.alignment, plane.block_bytes,
                           "blocks of " + std::to_string(plane.block_bytes) + " bytes are no multiple of it");
        }
        return {};
    }
};

}  // namespace detail
}  // namespace kvjit::interop
