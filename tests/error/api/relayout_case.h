// A small legal relayout, to be spoiled in one place at a time.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "public_call.h"

namespace kvjit::test {

/// Two batches as BatchCase has them, each with a cache of its own.
struct RelayoutCase {
    BatchCase from, to;
    kvjit_relayout relayout;
    kvjit_plan_options options;
    kvjit_tensors read, written;
    std::int64_t from_layer = 0, to_layer = 0;

    /// Specs of op KeyValueCache, without it.
    RelayoutCase(std::string_view from_text, std::string_view to_text);
    RelayoutCase(const RelayoutCase&) = delete;

    kvjit_spec spec() const;
    /// *plan stays null when it is refused.
    kvjit_status try_plan(Handle<kvjit_plan>* plan, kvjit_error* error) const;
    Handle<kvjit_plan> plan() const;
    kvjit_status run(kvjit_plan* plan, kvjit_error* error) const;

    /// Every byte of both caches.
    std::vector<std::byte> snapshot() const;

private:
    CallTensors from_memory_, to_memory_;
};

}  // namespace kvjit::test
