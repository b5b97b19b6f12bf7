#include "emulation/meetings.h"

namespace kvjit::emulation {
namespace {

const char* name(Collective kind) {
    switch (kind) {
        case Collective::kBarrier:
            return "barrier";
        case Collective::kWarpBarrier:
            return "warp_barrier";
        case Collective::kShuffle:
            return "shuffle";
        case Collective::kBallot:
            return "ballot";
        case Collective::kMma:
            return "mma_16x8x16";
        case Collective::kLoadMatrices:
            return "load_matrices";
    }
    return "collective";
}

std::string thread(int index) {
    return "thread " + std::to_string(index);
}

bool same(Site a, Site b) {
    return a.line == b.line && std::string_view(a.file) == b.file;
}

}  // namespace

std::string describe(Collective kind, Site site) {
    return std::string(name(kind)) + " at " + site.file + ":" + std::to_string(site.line);
}

void Meetings::start(int threads) {
    threads_ = threads;
    block_ = {};
    warps_.resize(threads / kWarpLanes);
    for (Warp& warp : warps_) static_cast<Meeting&>(warp) = {}, warp.at_barrier = -1, warp.epoch = 0;
    ++block_epoch_;
}

std::string Meetings::join(Meeting& meeting, int index, Collective kind, Site site) {
    if (meeting.returned >= 0) {
        return thread(index) + " is in " + describe(kind, site) + ", " + thread(meeting.returned) +
               " has returned from the kernel";
    }
    if (meeting.arrived == 0) {
        meeting.kind = kind;
        meeting.site = site;
        meeting.first = index;
    } else if (meeting.kind != kind || !same(meeting.site, site)) {
        return thread(index) + " is in " + describe(kind, site) + ", " + thread(meeting.first) + " waits in " +
               describe(meeting.kind, meeting.site);
    }
    ++meeting.arrived;
    return {};
}

std::string Meetings::meet_block(Fiber& self, Site site) {
    Warp& warp = warps_[self.index / kWarpLanes];
    if (warp.arrived > 0) {
        return thread(self.index) + " is in " + describe(Collective::kBarrier, site) + ", " + thread(warp.first) +
               " of its warp waits in " + describe(warp.kind, warp.site);
    }
    if (std::string wrong = join(block_, self.index, Collective::kBarrier, site); !wrong.empty()) return wrong;
    warp.at_barrier = self.index;
    if (block_.arrived < threads_) {
        schedule_.wait(self);
        return {};
    }
    block_.arrived = 0;
    ++block_epoch_;
    for (Warp& each : warps_) each.at_barrier = -1, each.epoch = 0;
    for (int i = 0; i < threads_; ++i) {
        if (i != self.index) schedule_.wake(i);
    }
    return {};
}

std::string Meetings::meet_warp(Fiber& self, Collective kind, Site site, void* argument, void (*work)(void* const*)) {
    const int number = self.index / kWarpLanes;
    Warp& warp = warps_[number];
    if (warp.at_barrier >= 0) {
        return thread(self.index) + " is in " + describe(kind, site) + ", " + thread(warp.at_barrier) +
               " of its warp waits in " + describe(Collective::kBarrier, block_.site);
    }
    if (std::string wrong = join(warp, self.index, kind, site); !wrong.empty()) return wrong;
    warp.arguments[self.index % kWarpLanes] = argument;
    if (warp.arrived < kWarpLanes) {
        schedule_.wait(self);
        return {};
    }
    warp.arrived = 0;
    if (kind == Collective::kWarpBarrier) ++warp.epoch;
    if (work) work(warp.arguments);
    for (int i = number * kWarpLanes; i < (number + 1) * kWarpLanes; ++i) {
        if (i != self.index) schedule_.wake(i);
    }
    return {};
}

std::string Meetings::leave(Fiber& self) {
    Warp& warp = warps_[self.index / kWarpLanes];
    for (const Meeting* meeting : {static_cast<const Meeting*>(&warp), static_cast<const Meeting*>(&block_)}) {
        if (meeting->arrived == 0) continue;
        return thread(self.index) + " returns from the kernel, " + thread(meeting->first) + " waits for it in " +
               describe(meeting->kind, meeting->site);
    }
    warp.returned = block_.returned = self.index;
    return {};
}

}  // namespace kvjit::emulation
