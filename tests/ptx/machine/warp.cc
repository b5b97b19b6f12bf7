#include "ptx/machine/warp.h"

#include <algorithm>
#include <string>

#include "ptx/machine/instructions.h"

namespace kvjit::ptx {
namespace {

u32 lanes_of(u32 warp, u32 threads) {
    const u32 count = std::min<u32>(kLanes, threads - warp * kLanes);
    return count == kLanes ? kAllLanes : (1U << count) - 1;
}

/// "lanes 0-7, 16"
std::string lane_list(u32 mask) {
    std::string text;
    for (int begin = 0; begin < kLanes; ++begin) {
        if ((mask >> begin & 1) == 0) continue;
        int end = begin;
        while (end + 1 < kLanes && (mask >> (end + 1) & 1) != 0) ++end;
        text += (text.empty() ? "" : ", ") + std::to_string(begin);
        if (end > begin) text += "-" + std::to_string(end);
        begin = end;
    }
    return text.empty() ? "no lane" : "lanes " + text;
}

u64 special_of(Special what, const BlockState& block, u32 warp, int lane) {
    switch (what) {
        case Special::kLane:
            return static_cast<u64>(lane);
        case Special::kThreadX:
            return warp * kLanes + static_cast<u64>(lane);
        case Special::kThreadsX:
            return block.threads;
        case Special::kBlockX:
            return block.x;
        case Special::kBlockY:
            return block.y;
        case Special::kBlocksX:
            return block.blocks_x;
        case Special::kBlocksY:
            return block.blocks_y;
    }
    return 0;
}

template <class T>
void fill(Unit& first, const auto& value_of) {
    auto* to = reinterpret_cast<T*>(first.bytes);
    for (int l = 0; l < kLanes; ++l) to[l] = static_cast<T>(value_of(l));
}

void fill(Unit& first, Width width, const auto& value_of) {
    switch (width) {
        case Width::kPredicate:
            *reinterpret_cast<u32*>(first.bytes) = value_of(0) != 0 ? kAllLanes : 0;
            return;
        case Width::k16:
            return fill<u16>(first, value_of);
        case Width::k32:
            return fill<u32>(first, value_of);
        case Width::k64:
            return fill<u64>(first, value_of);
    }
}

}  // namespace

Warp::Warp(const Kernel& kernel, BlockState& block, u32 number)
    : kernel_(kernel),
      block_(block),
      number_(number),
      alive_(lanes_of(number, block.threads)),
      units_(kernel.units),
      written_(kernel.units, 0),
      async_registers_(kernel) {
    for (const Constant& constant : kernel.constants) {
        fill(units_[constant.place], constant.width, [&](int) { return constant.bits; });
        written_[constant.place] = kAllLanes;
    }
    for (const SpecialRegister& special : kernel.specials) {
        fill(units_[special.place], special.width,
             [&](int lane) { return special_of(special.what, block, number, lane); });
        written_[special.place] = kAllLanes;
    }
    paths_.push_back({0, kNowhere, alive_});
}

Warp::State Warp::run(int steps) {
    for (turn_ends_ = false; steps > 0 && state_ == State::kRuns && !turn_ends_; --steps) {
        const u32 at = current();
        try {
            step();
        } catch (const Fault& fault) {
            explain(fault, at);
        }
    }
    return state_;
}

void Warp::step() {
    Path& path = paths_.back();
    const Instruction& in = kernel_.instructions[path.next];
    mask_ = path.mask;
    if (in.is_guarded) {
        check_written(in.guard, mask_);
        mask_ &= in.is_guard_negated ? ~predicate(in.guard) : predicate(in.guard);
    }
    ++path.next;
    if (mask_ != 0 || in.is_branch) {
        if (!kernel_.lists.empty()) note_accesses(in);
        for (int i = 0; i < in.sources && !in.is_copy; ++i) check_written(in.source(i), mask_);
        in.execute(*this, in);
        for (int i = 0; i < in.destinations && !in.is_copy; ++i) written_[in.destination(i)] |= mask_;
    }
    leave_finished_paths();
}

void Warp::check_written(Place place) const {
    check_written(place, mask_);
}

void Warp::check_written(Place place, u32 mask) const {
    const u32 missing = mask & ~written_[place];
    if (missing == 0) return;
    throw Fault(FaultKind::kUnwritten, "register " + kernel_.registers[place] + " is read, but was never written",
                std::countr_zero(missing));
}

/// Registers of wgmma are in no list of operands: these are all of others.
void Warp::note_accesses(const Instruction& in) {
    for (int i = 0; i < in.sources; ++i) async_registers_.read(in.source(i));
    for (int i = 0; i < in.destinations; ++i) async_registers_.write(in.destination(i));
}

bool Warp::products_are_early() {
    if (options().products == ProductTime::kBySeed) return (block_.random->next() >> 63) != 0;
    return options().products == ProductTime::kAtIssue;
}

void Warp::copy_written(Place to, Place from, Place otherwise, u32 choice) {
    const u32 bits = (written_[from] & choice) | (written_[otherwise] & ~choice);
    written_[to] = (written_[to] & ~mask_) | (bits & mask_);
}

void Warp::leave_finished_paths() {
    while (!paths_.empty() && (paths_.back().mask == 0 || paths_.back().next == paths_.back().reconvergence)) {
        paths_.pop_back();
    }
    if (paths_.empty()) state_ = State::kDone;
}

// ---- Control flow ------------------------------------------------------------------------------------------------

/// Lanes that part go one after the other, in an order that the ISA does not promise, and meet at the branch's
/// immediate post-dominator.
void Warp::branch(const Instruction& in) {
    Path& path = paths_.back();
    const u32 taken = mask_, others = path.mask & ~mask_, next = path.next;
    if (taken == 0) return;
    if (others == 0) {
        path.next = in.target;
        return;
    }
    const u32 meeting = in.reconvergence;
    path.next = meeting;
    if (meeting == kNowhere) path.mask = 0;  // nothing is left to do together
    Path ways[2] = {{next, meeting, others}, {in.target, meeting, taken}};
    if ((block_.random->next() >> 63) != 0) std::swap(ways[0], ways[1]);
    for (const Path& way : ways) {
        if (way.next != meeting) paths_.push_back(way);
    }
}

void Warp::branch_together(const Instruction& in) {
    const u32 here = paths_.back().mask;
    if (mask_ != 0 && mask_ != here) {
        throw Fault(FaultKind::kApart, "only " + lane_list(mask_) + " of " + lane_list(here) + " take the branch",
                    std::countr_zero(mask_));
    }
    branch(in);
}

void Warp::exit() {
    alive_ &= ~mask_;
    for (Path& path : paths_) path.mask &= ~mask_;
}

void Warp::wait_at_barrier(Barrier barrier) {
    check_together();
    barrier_ = barrier;
    state_ = State::kAtBarrier;
}

void Warp::check_together() const {
    if (mask_ == alive_) return;
    throw Fault(FaultKind::kApart, "only " + lane_list(mask_) + " of the warp's " + lane_list(alive_) + " are here",
                std::countr_zero(mask_));
}

void Warp::check_whole() const {
    check_together();
    if (mask_ != kAllLanes) throw Fault(FaultKind::kApart, "it takes all 32 lanes of a warp");
}

void Warp::check_members(Place masks) const {
    const u32* members = lanes<u32>(masks);
    for (int l = 0; l < kLanes; ++l) {
        if (!is_active(l) || (members[l] & alive_) == mask_) continue;
        throw Fault(FaultKind::kApart,
                    "the members are " + lane_list(members[l] & alive_) + ", but " + lane_list(mask_) + " are here", l);
    }
}

// ---- Asynchronous copies -----------------------------------------------------------------------------------------

void Warp::begin_copy(int lane, u64 shared, u64 global, u32 bytes, u32 read) {
    const Copy copy{shared, global, bytes, read, lane, groups_[static_cast<std::size_t>(lane)]};
    block_.shared.begin_copy(shared, bytes, options().copies == Copies::kPoisoned, accessor(lane));
    if (read > 0) {
        block_.global->check(global, read, lane);
        block_.stores.check_order(global, read, accessor(lane), false);  // a barrier before the wait comes too late
    }
    if (options().copies == Copies::kAtIssue) return finish(copy);
    copies_.push_back(copy);
}

void Warp::finish(const Copy& copy) {
    std::byte bytes[16] = {};
    block_.stores.load(copy.global, bytes, copy.read, accessor(copy.lane));
    block_.shared.end_copy(copy.shared, bytes, copy.bytes, accessor(copy.lane));
}

void Warp::commit_copies() {
    for (int l = 0; l < kLanes; ++l) groups_[static_cast<std::size_t>(l)] += is_active(l);
}

void Warp::wait_copies(i64 pending) {
    const auto has_arrived = [&](const Copy& copy) {
        return is_active(copy.lane) && copy.group + pending < groups_[static_cast<std::size_t>(copy.lane)];
    };
    for (const Copy& copy : copies_) {
        if (has_arrived(copy)) finish(copy);
    }
    std::erase_if(copies_, has_arrived);
}

// ---- Messages ----------------------------------------------------------------------------------------------------

std::string Warp::where(u32 at) const {
    return kernel_.lines.where(kernel_.name, kernel_.origins[at]);
}

void Warp::explain(const Fault& fault, u32 at) const {
    std::string text = where(at) + ", " + std::string(name_of(kernel_.instructions[at])) + ": " + fault.what() +
                       "; block (" + std::to_string(block_.x) + ", " + std::to_string(block_.y) + "), warp " +
                       std::to_string(number_);
    if (fault.lane() != Fault::kNoLane) text += ", lane " + std::to_string(fault.lane());
    throw Fault(fault.kind(), text, fault.lane());
}

std::string Warp::describe() const {
    if (state_ == State::kDone) return "has ended";
    const u32 at = current() - (state_ == State::kAtBarrier ? 1 : 0);
    return std::string(state_ == State::kAtBarrier ? "waits at " : "is at ") + where(at) + ", " + lane_list(alive_);
}

}  // namespace kvjit::ptx
