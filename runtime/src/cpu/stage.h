// A stage of a call on CPUs: items of work for an executor.
#pragma once

#include <cstdint>
#include <span>

#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// Items of a stage for each thread, so that the last ones to finish are short.
inline constexpr std::int64_t kItemsPerThread = 4;

/// Passes one stage's items to an executor: task i calls the kernel on item i. Attention has two kernels, whose items
/// run in one stage so that no thread waits between them; `others` are the second one's.
template <class Args, class Item>
class Stage {
public:
    using KernelFunction = void (*)(const Args*, const Item*);

    Stage(const Args& args, void* kernel, std::span<const Item> items, void* other_kernel = nullptr,
          std::span<const Item> others = {})
        : args_(args),
          kernel_(reinterpret_cast<KernelFunction>(kernel)),
          other_kernel_(reinterpret_cast<KernelFunction>(other_kernel)),
          items_(items),
          others_(others) {}

    void run(const kvjit_executor& executor) {
        if (count() != 0) executor.run(executor.context, run_item, this, count());
    }
    void run_serially() {
        for (std::int64_t i = 0; i < count(); ++i) run_item(this, i);
    }

private:
    std::int64_t count() const { return std::ssize(items_) + std::ssize(others_); }

    static void run_item(void* stage, std::int64_t i) {
        const Stage& self = *static_cast<const Stage*>(stage);
        const auto index = static_cast<std::size_t>(i);
        if (index < self.items_.size()) {
            self.kernel_(&self.args_, &self.items_[index]);
        } else {
            self.other_kernel_(&self.args_, &self.others_[index - self.items_.size()]);
        }
    }

    Args args_;
    KernelFunction kernel_;
    KernelFunction other_kernel_;
    std::span<const Item> items_;
    std::span<const Item> others_;
};

}  // namespace kvjit::rt
