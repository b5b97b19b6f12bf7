// Continuous batching: which sequences work in a step, and on how many tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "page_allocator.h"

namespace demo {

struct Sequence {
    std::int64_t prompt;  // tokens to prefill
    std::int64_t output;  // tokens to decode then
    int arrival = 0;      // step at which it begins to wait
    std::int64_t stored = 0;
    std::vector<std::int64_t> pages{};

    bool decodes() const { return stored >= prompt; }
    bool finished() const { return stored >= prompt + output; }
};

/// One sequence's part of a step: its next `tokens` tokens.
struct Work {
    Sequence* sequence;
    std::int64_t tokens;
};

/// The batch of a step. Decoding sequences come first, as kvjit_batch.decoding_batches wants them.
struct Step {
    std::vector<Work> work;
    std::int64_t decoding = 0;
    std::int64_t prefill_tokens = 0;
};

class Scheduler {
public:
    Scheduler(PageAllocator& pages, std::int64_t page_size, std::int64_t prefill_budget)
        : pages_(pages), page_size_(page_size), prefill_budget_(prefill_budget) {}

    /// In the order of their arrival.
    void submit(Sequence sequence) { waiting_.push_back(std::move(sequence)); }

    /// Admits who has arrived and whose pages are free even at its longest, then takes each decoding sequence and
    /// prompts up to the budget. Takes the pages that the step's new tokens need.
    Step begin_step(int number);

    /// The step's tokens are stored. Finished sequences leave and give their pages back.
    void end_step(const Step& step);

    /// Gives `sequence` pages for its next tokens.
    void reserve(Sequence& sequence, std::int64_t tokens);

    std::int64_t finished() const { return finished_; }

private:
    std::int64_t pages_at_the_end(const Sequence& sequence) const;
    bool fits(const Sequence& sequence) const;

    PageAllocator& pages_;
    std::int64_t page_size_;
    std::int64_t prefill_budget_;
    std::deque<Sequence> waiting_;
    std::deque<Sequence> running_;
    std::int64_t finished_ = 0;
};

}  // namespace demo
