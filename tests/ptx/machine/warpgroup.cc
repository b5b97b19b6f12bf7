#include "ptx/machine/warpgroup.h"

#include <algorithm>
#include <string>

#include "ptx/machine/descriptor.h"
#include "ptx/machine/sums.h"
#include "ptx/machine/warp.h"

namespace kvjit::ptx {

// ---- Four warps that execute the same ----------------------------------------------------------------------------

std::optional<Lockstep::Step> Lockstep::follow(u32 warp, const Step& step) {
    const u64 number = executed_[warp]++;
    if (number == first_ + steps_.size()) {
        steps_.push_back(step);
        return std::nullopt;
    }
    const Step other = steps_[number - first_];
    forget_common();
    if (other == step) return std::nullopt;
    return other;
}

void Lockstep::forget_common() {
    for (const u64 common = std::ranges::min(executed_); first_ < common; ++first_) steps_.pop_front();
}

std::optional<Lockstep::Lag> Lockstep::lag() const {
    const auto least = std::ranges::min_element(executed_);
    if (steps_.empty()) return std::nullopt;
    return Lag{static_cast<u32>(least - executed_.begin()), steps_[*least - first_]};
}

namespace {

std::string difference(const Warp& warp, const Lockstep::Step& step, const Lockstep::Step& other) {
    if (other.at != step.at) return "executed the instruction of " + warp.where(other.at) + " instead";
    if (other.b != step.b) return "has another descriptor of B";
    if (other.a != step.a) return "has another descriptor of A";
    return other.accumulates ? "adds to D" : "does not add to D";
}

/// All threads of the warpgroup execute it, with the same descriptors: 9.7.15.5.2.
void follow(Warp& warp, const Instruction& in, Lockstep::Step step = {}) {
    warp.check_whole();
    const u32 group = warp.number() / kWarpsOfGroup;
    if (group >= warp.block().warpgroups.size()) {
        throw Fault(FaultKind::kApart, "a warpgroup has four warps, but the block's " +
                                           std::to_string(warp.block().threads) + " threads end within this one");
    }
    step.at = warp.index_of(in);
    const auto other = warp.block().warpgroups[group].follow(warp.number() % kWarpsOfGroup, step);
    if (other) throw Fault(FaultKind::kApart, "another warp of the warpgroup " + difference(warp, step, *other));
}

// ---- Operands ----------------------------------------------------------------------------------------------------

/// What a warp's lanes have in common.
template <class T>
T common(const Warp& warp, Place place, const char* what) {
    const T* values = warp.lanes<T>(place);
    const T* other = std::ranges::find_if(values, values + kLanes, [&](T value) { return value != values[0]; });
    if (other == values + kLanes) return values[0];
    throw Fault(FaultKind::kApart, std::string("the warp's lanes differ in ") + what, static_cast<int>(other - values));
}

/// Of a predicate all lanes are in one number.
bool common_predicate(const Warp& warp, Place place) {
    const u32 bits = warp.predicate(place);
    if (bits == 0 || bits == kAllLanes) return bits != 0;
    throw Fault(FaultKind::kApart, "the warp's lanes differ in scale-d");
}

void check_number(i64 number, const char* name, i64 low, i64 high) {
    if (number == low || number == high) return;
    throw Fault(FaultKind::kText, std::string(name) + " is " + std::to_string(number) + ", expected " +
                                      std::to_string(low) + " or " + std::to_string(high));
}

/// The numbers in the text: imm-scale-a, imm-scale-b, imm-trans-a where A has a descriptor, imm-trans-b.
struct Numbers {
    bool negates_a, negates_b, transposes_a = false, transposes_b;

    Numbers(const Instruction& in, bool has_fragment) {
        const i64 trans_a = has_fragment ? 0 : in.immediates[2], trans_b = in.immediates[has_fragment ? 2 : 3];
        check_number(in.immediates[0], "imm-scale-a", -1, 1);
        check_number(in.immediates[1], "imm-scale-b", -1, 1);
        check_number(trans_a, "imm-trans-a", 0, 1);
        check_number(trans_b, "imm-trans-b", 0, 1);
        negates_a = in.immediates[0] == -1;
        negates_b = in.immediates[1] == -1;
        transposes_a = trans_a == 1;
        transposes_b = trans_b == 1;
    }
};

constexpr std::size_t kFragmentRegisters = 4;
constexpr u32 kRowsOfA = 64, kPiecesOfGroup = 16;

u32 columns_of(std::size_t registers, bool has_fragment) {
    return static_cast<u32>(2 * (registers - (has_fragment ? kFragmentRegisters : 0)));
}

// ---- The product -------------------------------------------------------------------------------------------------

/// A group of 8 rows of A, or columns of B: its numbers become those from `first` on.
template <class Format, int kCount>
void load_group(Multiplicand<kCount>& to, int first, const SharedMemory& from, const u32* pieces, bool is_transposed,
                u16 flip) {
    for (int i = 0; i < static_cast<int>(kPiecesOfGroup); ++i) {
        u16 numbers[8];
        from.read(pieces[i], numbers);
        for (int e = 0; e < 8; ++e) {
            const int k = is_transposed ? i : i % 2 * 8 + e, along = is_transposed ? e : i / 2;
            to.template set<Format>(k, first + along, numbers[e] ^ flip);
        }
    }
}

/// Registers a0 to a7, as of mma's m16n8k16: figure 148.
template <class Format>
void load_fragment(Multiplicand<kM>& to, const Warp& warp, const Place* registers, u16 flip) {
    for (int i = 0; i < static_cast<int>(kFragmentRegisters); ++i) {
        const u32* pairs = warp.lanes<u32>(registers[i]);
        for (int l = 0; l < kLanes; ++l) {
            const int row = l / 4 + i % 2 * 8, k = l % 4 * 2 + i / 2 * 8;
            to.set<Format>(k, row, static_cast<u16>(pairs[l]) ^ flip);
            to.set<Format>(k + 1, row, static_cast<u16>(pairs[l] >> 16) ^ flip);
        }
    }
}

template <class Format>
void load_a(Multiplicand<kM>& to, const Warp& warp, const Product& product, const Numbers& numbers) {
    const u16 flip = numbers.negates_a ? 0x8000 : 0;
    const std::vector<Place>& registers = warp.list(*product.in);
    if (product.has_fragment())
        return load_fragment<Format>(to, warp, &registers[registers.size() - kFragmentRegisters], flip);
    const u32* pieces = &product.a[warp.number() % kWarpsOfGroup * 2 * kPiecesOfGroup];
    for (int group = 0; group < 2; ++group) {
        load_group<Format>(to, 8 * group, warp.shared(), pieces + group * kPiecesOfGroup, numbers.transposes_a, flip);
    }
}

/// Adds to 8 columns of D, in four registers: figure 149.
void add_columns(Warp& warp, const Place* registers, const Multiplicand<kM>& a, const Multiplicand<kN>& b,
                 bool accumulates) {
    float sums[kM][kN] = {}, results[4][kLanes];
    for (int i = 0; accumulates && i < 4; ++i) {
        const auto* before = warp.lanes<float>(registers[i]);
        for (int l = 0; l < kLanes; ++l) sum_of_lane(sums, l, i) = before[l];
    }
    for (int row = 0; row < kM; ++row) add_products(sums[row], a, row, b, warp.options().sums);
    for (int i = 0; i < 4; ++i) {
        for (int l = 0; l < kLanes; ++l) results[i][l] = sum_of_lane(sums, l, i);
        warp.put(registers[i], results[i]);
    }
}

template <class Format>
void multiply(Warp& warp, const Product& product) {
    const Numbers numbers(*product.in, product.has_fragment());
    const u16 flip = numbers.negates_b ? 0x8000 : 0;
    Multiplicand<kM> a;
    load_a<Format>(a, warp, product, numbers);
    const Place* registers = warp.list(*product.in).data();
    for (std::size_t group = 0; group < product.b.size() / kPiecesOfGroup; ++group) {
        Multiplicand<kN> b;
        load_group<Format>(b, 0, warp.shared(), &product.b[group * kPiecesOfGroup], numbers.transposes_b, flip);
        add_columns(warp, registers + 4 * group, a, b, product.accumulates);
    }
}

/// The rules of its registers, before it begins. They can be used again when it was waited for.
void begin_registers(Warp& warp, const Product& product) {
    AsyncRegisters& uses = warp.async_registers();
    const std::vector<Place>& registers = warp.list(*product.in);
    const std::size_t sums = registers.size() - (product.has_fragment() ? kFragmentRegisters : 0);
    for (std::size_t i = 0; i < registers.size(); ++i) {
        const Place place = registers[i];
        const bool is_sum = i < sums, is_read = !is_sum || product.accumulates;
        if (is_read && !uses.is_pending(place)) warp.check_written(place);
        is_sum ? uses.begin_sum(place, static_cast<u16>(2 * sums)) : uses.begin_fragment(place);
    }
}

}  // namespace

// ---- Products under way ------------------------------------------------------------------------------------------

void Products::begin(Warp& warp, Product product) {
    warp.async_registers().check_fenced();
    begin_registers(warp, product);
    SharedMemory& shared = warp.block().shared;
    // The four warps read together, so each reads all of A and B, whatever rows are its own.
    for (const u32 piece : product.a) shared.begin_read(piece, warp.accessor(0));
    for (const u32 piece : product.b) shared.begin_read(piece, warp.accessor(0));
    product.group = groups_;
    pending_.push_back(std::move(product));
    if (warp.products_are_early()) finish_all(warp);
}

/// In order: they may add to the same registers.
void Products::finish_all(Warp& warp) {
    for (Product& product : pending_) {
        if (!product.is_done) product.multiply(warp, product);
        product.is_done = true;
    }
}

void Products::wait(Warp& warp, i64 left) {
    const auto is_waited_for = [&](const Product& product) { return product.group + left < groups_; };
    const auto end = std::ranges::find_if_not(pending_, is_waited_for);
    SharedMemory& shared = warp.block().shared;
    for (auto product = pending_.begin(); product != end; ++product) {
        if (!product->is_done) product->multiply(warp, *product);
        for (const u32 piece : product->a) shared.end_read(piece, warp.accessor(0));
        for (const u32 piece : product->b) shared.end_read(piece, warp.accessor(0));
        for (const Place place : warp.list(*product->in)) {
            warp.async_registers().end(place);
            warp.mark_written(place);
        }
    }
    pending_.erase(pending_.begin(), end);
}

// ---- Instructions ------------------------------------------------------------------------------------------------

template <class Format, bool kHasFragment>
void begin_product(Warp& warp, const Instruction& in) {
    const Numbers numbers(in, kHasFragment);
    const u32 columns = columns_of(warp.list(in).size(), kHasFragment);
    Lockstep::Step step;
    int source = 0;
    if constexpr (!kHasFragment) step.a = common<u64>(warp, in.source(source++), "the descriptor of A");
    step.b = common<u64>(warp, in.source(source++), "the descriptor of B");
    step.accumulates = common_predicate(warp, in.source(source));
    follow(warp, in, step);
    Product product{&in, multiply<Format>, {}, {}, step.accumulates, 0};
    if constexpr (!kHasFragment) product.a = pieces_of(step.a, {'A', kRowsOfA, numbers.transposes_a});
    product.b = pieces_of(step.b, {'B', columns, numbers.transposes_b});
    warp.products().begin(warp, std::move(product));
}

template void begin_product<Float16, false>(Warp&, const Instruction&);
template void begin_product<Float16, true>(Warp&, const Instruction&);
template void begin_product<BFloat16, false>(Warp&, const Instruction&);
template void begin_product<BFloat16, true>(Warp&, const Instruction&);

void fence_registers(Warp& warp, const Instruction& in) {
    follow(warp, in);
    warp.async_registers().fence();
}

void commit_products(Warp& warp, const Instruction& in) {
    follow(warp, in);
    warp.products().commit();
}

void wait_products(Warp& warp, const Instruction& in) {
    follow(warp, in);
    warp.products().wait(warp, in.immediates[0]);
}

void fence_async_proxy(Warp& warp, const Instruction&) {
    for (int l = 0; l < kLanes; ++l) {
        if (warp.is_active(l)) warp.block().shared.fence(warp.accessor(l));
    }
}

}  // namespace kvjit::ptx
