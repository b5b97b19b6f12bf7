#include "scheduler.h"

#include <algorithm>

namespace demo {

std::int64_t Scheduler::pages_at_the_end(const Sequence& sequence) const {
    return (sequence.prompt + sequence.output + page_size_ - 1) / page_size_;
}

bool Scheduler::fits(const Sequence& sequence) const {
    std::int64_t promised = pages_at_the_end(sequence);
    for (const Sequence& other : running_) {
        promised += pages_at_the_end(other) - static_cast<std::int64_t>(other.pages.size());
    }
    return promised <= pages_.free_pages() + static_cast<std::int64_t>(sequence.pages.size());
}

void Scheduler::reserve(Sequence& sequence, std::int64_t tokens) {
    const std::int64_t room = (sequence.stored + tokens + page_size_ - 1) / page_size_;
    while (static_cast<std::int64_t>(sequence.pages.size()) < room) sequence.pages.push_back(pages_.take());
}

Step Scheduler::begin_step(int number) {
    while (!waiting_.empty() && waiting_.front().arrival <= number && fits(waiting_.front())) {
        running_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
    }
    Step step;
    for (Sequence& sequence : running_) {
        if (sequence.decodes()) step.work.push_back({&sequence, 1});
    }
    step.decoding = static_cast<std::int64_t>(step.work.size());
    for (Sequence& sequence : running_) {
        const std::int64_t chunk = std::min(sequence.prompt - sequence.stored, prefill_budget_ - step.prefill_tokens);
        if (sequence.decodes() || chunk <= 0) continue;
        step.work.push_back({&sequence, chunk});
        step.prefill_tokens += chunk;
    }
    for (const Work& work : step.work) reserve(*work.sequence, work.tokens);
    return step;
}

void Scheduler::end_step(const Step& step) {
    for (const Work& work : step.work) work.sequence->stored += work.tokens;
    for (const Sequence& sequence : running_) {
        if (!sequence.finished()) continue;
        pages_.give_back(sequence.pages);
        ++finished_;
    }
    running_.erase(std::remove_if(running_.begin(), running_.end(), [](const Sequence& s) { return s.finished(); }),
                   running_.end());
}

}  // namespace demo
