// Hopper's wgmma: products of matrices that a warpgroup begins, and that are there when it has waited for them.
// ISA 9.7.15.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

class Warp;

inline constexpr u32 kWarpsOfGroup = 4;

/// What the warps of a warpgroup must execute alike, one after the other: .aligned of the wgmma instructions.
class Lockstep {
public:
    struct Step {
        u32 at = 0;        // the instruction
        u64 a = 0, b = 0;  // descriptors
        bool accumulates = false;
        bool operator==(const Step&) const = default;
    };
    /// The next one of a warp. Another warp's, if one has come there before and had another one.
    std::optional<Step> follow(u32 warp, const Step& step);

    struct Lag {
        u32 warp;
        Step missing;
    };
    /// A warp that lacks a step which another one has executed.
    std::optional<Lag> lag() const;

private:
    void forget_common();

    std::deque<Step> steps_;  // that not all have executed
    u64 first_ = 0;           // the number of the first of them
    std::array<u64, kWarpsOfGroup> executed_{};
};

/// A wgmma.mma_async of one warp: its 16 rows of D.
struct Product {
    using Multiply = void (*)(Warp&, const Product&);

    const Instruction* in;
    Multiply multiply;
    std::vector<u32> a, b;  // pieces of shared memory; of A only where it has a descriptor
    bool accumulates;
    u32 group;  // how many were committed before
    bool is_done = false;

    bool has_fragment() const { return a.empty(); }
};

/// A warp's products under way.
class Products {
public:
    void begin(Warp& warp, Product product);
    void commit() { ++groups_; }
    /// Until at most `left` of the committed groups are under way.
    void wait(Warp& warp, i64 left);

private:
    void finish_all(Warp& warp);

    std::vector<Product> pending_;  // in order
    u32 groups_ = 0;                // committed
};

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T, of A in registers or of a descriptor.
template <class Format, bool kHasFragment>
void begin_product(Warp& warp, const Instruction& in);
/// wgmma.fence, .commit_group and .wait_group.sync.aligned
void fence_registers(Warp& warp, const Instruction& in);
void commit_products(Warp& warp, const Instruction& in);
void wait_products(Warp& warp, const Instruction& in);

/// fence.proxy.async
void fence_async_proxy(Warp& warp, const Instruction& in);

}  // namespace kvjit::ptx
