// Calls through kvjit.h.
#pragma once

#include <memory>

#include "batch_case.h"
#include "expect.h"
#include "kvjit/kvjit.h"

namespace kvjit::test {

struct Release {
    void operator()(kvjit_engine* engine) const { kvjit_engine_release(engine); }
    void operator()(kvjit_kernel* kernel) const { kvjit_kernel_release(kernel); }
    void operator()(kvjit_plan* plan) const { kvjit_plan_release(plan); }
    void operator()(kvjit_target* target) const { kvjit_target_release(target); }
};
template <class T>
using Handle = std::unique_ptr<T, Release>;

kvjit_error new_error();

/// One for the process; it keeps its kernels in memory only.
kvjit_engine* shared_engine();
Handle<kvjit_kernel> kernel_of(const kvjit_spec& spec);

/// A plan on one thread; requires that it is accepted.
Handle<kvjit_plan> plan_of(const BatchCase& c);

/// kvjit_plan_create at the full level; *plan stays null when it is refused.
kvjit_status try_plan(const BatchCase& c, Handle<kvjit_plan>* plan, kvjit_error* error);

/// The same demands as expect_refused makes on an internal error, and that `status` was returned.
void expect_error(kvjit_status status, const kvjit_error& error, const Refusal& want);

}  // namespace kvjit::test
