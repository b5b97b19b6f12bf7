// The C entry points of blocks.h.
#include "blocks/blocks.h"
#include "c_struct.h"

using namespace kvjit;

namespace {

/// Calls `body` with the options in this version's size.
template <class Body>
kvjit_status with_options(const kvjit_blocks_options* given, kvjit_error* error, const Body& body) {
    return rt::guarded_long(error, [&]() -> gen::Result<void> {
        const gen::Result<kvjit_blocks_options> read = rt::read_optional_struct(given, "options");
        if (!read) return std::unexpected(read.error());
        const gen::Result<kvjit_executor> executor = rt::read_optional_struct(read->executor, "executor");
        if (!executor) return std::unexpected(executor.error());
        kvjit_blocks_options options = *read;
        if (options.executor != nullptr) options.executor = &*executor;
        return body(options);
    });
}

}  // namespace

void kvjit_blocks_init_sized(kvjit_blocks* blocks, size_t size) {
    rt::init_struct(blocks, size);
}
void kvjit_blocks_options_init_sized(kvjit_blocks_options* options, size_t size) {
    rt::init_struct(options, size);
}

kvjit_status kvjit_blocks_copy(const kvjit_blocks* from, const kvjit_blocks* to, const int64_t* from_ids,
                               const int64_t* to_ids, int64_t count, const kvjit_blocks_options* options,
                               kvjit_error* error) {
    return with_options(options, error, [&](const kvjit_blocks_options& how) {
        return rt::copy_blocks(from, to, from_ids, to_ids, count, how);
    });
}

kvjit_status kvjit_blocks_move(const kvjit_blocks* blocks, const int64_t* from_ids, const int64_t* to_ids,
                               int64_t count, const kvjit_blocks_options* options, kvjit_error* error) {
    return with_options(options, error, [&](const kvjit_blocks_options& how) {
        return rt::move_blocks(blocks, from_ids, to_ids, count, how);
    });
}

kvjit_status kvjit_blocks_swap(const kvjit_blocks* a, const kvjit_blocks* b, const int64_t* a_ids, const int64_t* b_ids,
                               int64_t count, const kvjit_blocks_options* options, kvjit_error* error) {
    return with_options(options, error, [&](const kvjit_blocks_options& how) {
        return rt::swap_blocks(a, b, a_ids, b_ids, count, how);
    });
}

kvjit_status kvjit_blocks_zero(const kvjit_blocks* blocks, const int64_t* ids, int64_t count,
                               const kvjit_blocks_options* options, kvjit_error* error) {
    return with_options(options, error,
                        [&](const kvjit_blocks_options& how) { return rt::zero_blocks(blocks, ids, count, how); });
}
