// What the sequences of a call look like, and which of two caches' tokens a relayout copies. Part of kvjit.hpp.
#pragma once

#include "kvjit/kvjit.h"

namespace kvjit {

struct Batch : kvjit_batch {
    Batch() { kvjit_batch_init(this); }
};

/// Which tokens of which cache go where. The batches are the caller's.
struct Relayout : kvjit_relayout {
    Relayout(const kvjit_batch& source, const kvjit_batch& destination) {
        kvjit_relayout_init(this);
        from = &source;
        to = &destination;
    }
};

}  // namespace kvjit
