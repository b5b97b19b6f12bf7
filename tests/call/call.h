// A whole call of kvjit's API: its arrays, its batch, and the tensors of its operator. Public members: a test that
// wants one mistake makes a legal call and changes one of them.
#pragma once

#include <utility>

#include "call/arrays.h"
#include "calls/tensors.h"
#include "support/guarded_buffer.h"

namespace kvjit::test {

using calls::Allocate, calls::bytes_of, calls::draw, calls::draw_inputs, calls::elements_of;

/// Of the host: each piece ends at a page that can't be touched (but for up to 15 bytes), or begins after one. The
/// bytes of a piece are all alike, and a finite number in every type. Lives as long as a copy of the function.
Allocate guarded_memory(Guard guard = Guard::kAfter);

struct CallTensors : calls::CallTensors {
    CallTensors(const IndexArrays& arrays, Rows rows, Allocate allocate = guarded_memory())
        : calls::CallTensors(arrays, rows, std::move(allocate)) {}
};

/// With exactly as many rows as its sequences have.
struct ApiCall : IndexArrays, CallTensors {
    explicit ApiCall(const CallShape& shape, Allocate allocate = guarded_memory())
        : IndexArrays(shape), CallTensors(*this, {seqstarts.back(), kvstarts.back()}, std::move(allocate)) {}
};

}  // namespace kvjit::test
