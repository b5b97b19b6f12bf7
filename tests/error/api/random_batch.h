// Random small batches, legal and not, whose arrays lie against guard pages.
#pragma once

#include <deque>

#include "batch_case.h"
#include "support/guarded_buffer.h"
#include "support/rng.h"

namespace kvjit::test {

/// A random batch of a cache operator: lengths, table form (padded, CSR, row index) and, with one chance in two, one to
/// three numbers of its arrays changed; addresses by so little that all of them stay in the case's memory, or to 0.
/// Each array ends where a page begins that can't be touched.
struct RandomBatch : BatchCase {
    RandomBatch(std::string_view spec, Rng& rng);

    /// Then new tokens are the last of the keys, whatever `start_pos` was: it becomes that.
    void leave_out_start_pos();

private:
    void draw_lengths(Rng& rng);
    void draw_table(Rng& rng);
    void make_csr();
    void shuffle_rows(Rng& rng);
    template <class Form>
    void form_tables(const Numbers& shape, Form form);
    void spoil(Rng& rng);
    void guard();

    std::deque<GuardedBuffer> buffers_;
};

}  // namespace kvjit::test
