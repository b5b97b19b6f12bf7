// The oracle's names among the tests' own.
#pragma once

#include "oracle/elements.h"
#include "oracle/layout.h"
#include "oracle/oracle.h"

namespace kvjit::test {

using oracle::Attended, oracle::CacheElement, oracle::CacheMemory, oracle::CacheRow, oracle::Dense, oracle::LayoutAxis,
    oracle::Problem, oracle::RowType, oracle::ScaledRow, oracle::Slot, oracle::Strided;
using oracle::bytes_of, oracle::cache_row, oracle::cache_shape, oracle::code_row, oracle::dequantised,
    oracle::from_bfloat16, oracle::from_half, oracle::has_cache, oracle::has_pages, oracle::in_sight, oracle::is_apart,
    oracle::layout_axes, oracle::offset_of, oracle::oracle_attend, oracle::oracle_dense, oracle::oracle_load,
    oracle::oracle_merge, oracle::oracle_store, oracle::place_of_new, oracle::quantise_row, oracle::read_element,
    oracle::scale_row, oracle::slot_of, oracle::to_bfloat16, oracle::to_half, oracle::value_layout,
    oracle::write_element;

}  // namespace kvjit::test
