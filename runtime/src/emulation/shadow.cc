#include "emulation/shadow.h"

#include <algorithm>
#include <bit>
#include <new>

#include "emulation/order.h"

namespace kvjit::emulation {
namespace {

bool writes(Touch touch) {
    return touch != Touch::kRead;
}

/// `lanes`: which of its warp made the mark, besides its thread.
bool ordered_in_block(const Mark& mark, std::uint32_t lanes, const Actor& actor) {
    if (mark.epoch() != actor.mark.epoch()) return true;
    if (mark.warp() != actor.mark.warp()) return false;
    return mark.warp_epoch() != actor.mark.warp_epoch() || std::has_single_bit(lanes | actor.lanes);
}

std::uint32_t own_lane(const Mark& mark) {
    return 1U << mark.thread() % kWarpLanes;
}

bool of_other_block(const Mark& mark, const Actor& actor) {
    return mark.epoch() >= actor.launch_start && mark.epoch() < actor.block_start;
}

Finding against_write(const Cell& cell, const Actor& actor, const Order* order) {
    const Mark& write = cell.write;
    if (write.epoch() < actor.block_start) {
        const bool reads = actor.mark.touch() == Touch::kRead || actor.mark.touch() == Touch::kAtomic;
        if (!order && reads) return {Conflict::kNeverWritten, write};
        if (!order || !of_other_block(write, actor)) return {};
        if (write.touch() == Touch::kAtomic && actor.mark.touch() == Touch::kAtomic) return {};
        if (order->before(write, actor)) return {};
        return {Conflict::kOtherBlockWrote, write};
    }
    if (write.touch() == Touch::kIssue) return {Conflict::kInFlight, write};
    if (write.touch() == Touch::kAtomic && actor.mark.touch() == Touch::kAtomic) return {};
    if (ordered_in_block(write, own_lane(write), actor)) return {};
    return {write.touch() == Touch::kAtomic ? Conflict::kAtomic : Conflict::kWritten, write};
}

/// One of the warp that read last, but not the actor.
Mark other_reader(const Cell& cell, const Actor& actor) {
    const std::uint32_t same_warp = cell.read.warp() == actor.mark.warp() ? own_lane(actor.mark) : 0;
    const std::uint32_t others = cell.read_lanes & ~same_warp;
    return others == 0 ? cell.read : cell.read.of_lane(std::countr_zero(others));
}

Finding against_reads(const Cell& cell, const Actor& actor, const Order* order) {
    if (cell.read.epoch() == actor.mark.epoch()) {
        const Mark& other = cell.other_warp;
        if (other.epoch() == actor.mark.epoch() && other.warp() != actor.mark.warp()) return {Conflict::kRead, other};
        if (other.epoch() == actor.mark.epoch()) return {Conflict::kRead, cell.read};
        if (!ordered_in_block(cell.read, cell.read_lanes, actor)) return {Conflict::kRead, other_reader(cell, actor)};
    }
    if (!order) return {};
    for (const Mark* read : {&cell.read, &cell.other_block}) {
        if (of_other_block(*read, actor) && !order->before(*read, actor)) return {Conflict::kOtherBlockRead, *read};
    }
    return {};
}

void note_read(Cell& cell, const Actor& actor) {
    Mark& read = cell.read;
    if (read.epoch() != actor.mark.epoch()) {
        if (of_other_block(read, actor)) cell.other_block = read;
        read = actor.mark;
        cell.read_lanes = actor.lanes;
    } else if (read.warp() != actor.mark.warp()) {
        cell.other_warp = actor.mark;
    } else {
        cell.read_lanes = read.warp_epoch() == actor.mark.warp_epoch() ? cell.read_lanes | actor.lanes : actor.lanes;
        read = actor.mark;
    }
}

}  // namespace

Finding touch(Cell& cell, const Actor& actor, const Order* order) {
    const Touch kind = actor.mark.touch();
    if (kind == Touch::kArrive) {
        cell.write = actor.mark;
        return {};
    }
    if (Finding finding = against_write(cell, actor, order); finding.conflict != Conflict::kNone) return finding;
    if (!writes(kind)) {
        note_read(cell, actor);
        return {};
    }
    if (Finding finding = against_reads(cell, actor, order); finding.conflict != Conflict::kNone) return finding;
    cell.write = actor.mark;
    return {};
}

// Pages of zeros that nobody has touched cost nothing.
template <class T>
Cells::Array<T> Cells::zeros(std::size_t count) {
    auto* array = static_cast<T*>(std::calloc(count, sizeof(T)));
    if (!array) throw std::bad_alloc();
    memory_ += count * sizeof(T);
    return Array<T>(array);
}

Cells::Cells(std::size_t bytes)
    : count_((bytes + kWord - 1) / kWord), words_(zeros<Cell>(count_)), split_(zeros<Epoch>(count_)) {}

bool Cells::is_split(std::size_t word, const Actor& actor) const {
    return split_[word] != 0 && split_[word] >= actor.launch_start;
}

void Cells::split(std::size_t word, const Actor& actor) {
    if (!bytes_) bytes_ = zeros<Cell>(count_ * kWord);
    std::fill_n(&bytes_[word * kWord], kWord, words_[word]);
    split_[word] = actor.mark.epoch();
}

Finding Cells::touch(std::size_t offset, std::size_t bytes, const Actor& actor, const Order* order) {
    const std::size_t end = offset + bytes;
    while (offset < end) {
        const std::size_t word = offset / kWord, stop = std::min(end, (word + 1) * kWord);
        const bool whole = stop - offset == kWord;
        if (!whole && !is_split(word, actor)) split(word, actor);
        if (!is_split(word, actor)) {
            if (Finding f = emulation::touch(words_[word], actor, order); f.conflict != Conflict::kNone) return f;
            offset = stop;
        }
        for (; offset < stop; ++offset) {
            if (Finding f = emulation::touch(bytes_[offset], actor, order); f.conflict != Conflict::kNone) return f;
        }
    }
    return {};
}

}  // namespace kvjit::emulation
