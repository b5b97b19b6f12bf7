#include "emulation/order.h"

#include <algorithm>

namespace kvjit::emulation {

void Order::start_launch() {
    counters_.clear();
}

void Order::start_block(int threads) {
    acquired_.clear();
    fences_.assign(static_cast<std::size_t>(threads), {});
}

void Order::fence(const Actor& actor) {
    fences_[actor.mark.thread()] = actor.mark;
    for (Acquire& acquire : acquired_) {
        if (acquire.atomic.thread() == actor.mark.thread() && acquire.fenced == 0) acquire.fenced = actor.mark.epoch();
    }
}

Epoch Order::all_fenced(const Actor& actor) const {
    const auto earliest = std::ranges::min_element(fences_, {}, &Mark::epoch);
    // A barrier must have followed, for this thread to know.
    return earliest->epoch() < actor.mark.epoch() ? earliest->epoch() : 0;
}

void Order::add(std::vector<Release>& releases, const Release& release) {
    for (Release& each : releases) {
        if (each.block_start != release.block_start || each.fence.thread() != release.fence.thread()) continue;
        each = release;
        return;
    }
    releases.push_back(release);
}

void Order::atomic(const void* address, const Actor& actor) {
    std::vector<Release>& counter = counters_[address];
    Acquire acquire{actor.mark, 0, counter};
    const Mark& fence = fences_[actor.mark.thread()];
    if (fence.epoch() != 0) {
        add(counter, {actor.block_start, fence, all_fenced(actor)});
        for (const Acquire& known : acquired_) {
            if (!knows(known, actor)) continue;
            for (const Release& release : known.releases) add(counter, release);
        }
    }
    if (!acquire.releases.empty()) acquired_.push_back(std::move(acquire));
}

bool Order::knows(const Acquire& acquire, const Actor& actor) const {
    if (acquire.fenced != 0 && acquire.fenced < actor.mark.epoch()) return true;  // and a barrier followed
    if (acquire.atomic.thread() == actor.mark.thread()) return acquire.fenced != 0;
    return fences_[actor.mark.thread()].epoch() > acquire.atomic.epoch();  // a barrier, then its own fence
}

bool Order::covers(const Release& release, const Mark& mark) {
    if (mark.epoch() < release.block_start || mark.epoch() > release.fence.epoch()) return false;
    if (mark.epoch() < release.fence.epoch() || mark.epoch() <= release.all_fenced) return true;
    if (mark.thread() == release.fence.thread()) return true;
    return mark.warp() == release.fence.warp() && mark.warp_epoch() < release.fence.warp_epoch();
}

bool Order::before(const Mark& mark, const Actor& actor) const {
    return std::ranges::any_of(acquired_, [&](const Acquire& acquire) {
        return knows(acquire, actor) &&
               std::ranges::any_of(acquire.releases, [&](const Release& r) { return covers(r, mark); });
    });
}

}  // namespace kvjit::emulation
