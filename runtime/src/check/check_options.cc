#include "check/check_options.h"

#include "check/fault.h"
#include "common/abi.h"

namespace kvjit::rt {
namespace {

using gen::Result;

constexpr std::int64_t kWorkspaceAlignment = 64;
constexpr std::int64_t kMaxThreads = 1024;
constexpr std::int64_t kMaxSpin = 1'000'000;

Result<void> check_executor(const kvjit_executor& executor) {
    if (executor.run == nullptr) return gen::fail(KVJIT_BAD_ARGUMENT, "executor.run", "executor.run is null");
    if (executor.concurrency >= 1) return {};
    return refuse(KVJIT_BAD_ARGUMENT, "executor.concurrency", executor.concurrency, 1, "it takes at least 1");
}

Result<void> check_split(const char* name, std::int64_t keys, std::int64_t unit) {
    if (keys > abi::kMaxKeys) {
        return refuse(KVJIT_BAD_ARGUMENT, name, keys, abi::kMaxKeys, text("it takes at most ", abi::kMaxKeys));
    }
    if (keys >= 0 && keys % unit == 0) return {};
    return refuse(KVJIT_BAD_ARGUMENT, name, keys, unit, text("it takes 0 or a multiple of ", unit));
}

}  // namespace

Result<void> check_workers(const kvjit_executor* executor, std::uint32_t num_threads, std::int64_t spin_us) {
    if (num_threads > kMaxThreads) {
        return refuse(KVJIT_BAD_ARGUMENT, "num_threads", num_threads, kMaxThreads,
                      text("it takes at most ", kMaxThreads));
    }
    if (spin_us < -1 || spin_us > kMaxSpin) {
        return refuse(KVJIT_BAD_ARGUMENT, "spin_us", spin_us, spin_us < 0 ? -1 : kMaxSpin,
                      text("it takes -1 (the default) to ", kMaxSpin));
    }
    return executor != nullptr ? check_executor(*executor) : Result<void>();
}

Result<void> check_options(const kvjit_plan_options& options) {
    if (options.check_level < KVJIT_CHECK_FULL || options.check_level > KVJIT_CHECK_NONE) {
        return refuse(KVJIT_BAD_ARGUMENT, "check_level", options.check_level, KVJIT_CHECK_NONE,
                      "it takes 0 (KVJIT_CHECK_FULL), 1 (KVJIT_CHECK_BATCH) or 2 (KVJIT_CHECK_NONE)");
    }
    if (options.stores_nothing != 0 && options.stores_nothing != 1) {
        return refuse(KVJIT_BAD_ARGUMENT, "stores_nothing", options.stores_nothing, 1, "it takes 0 or 1");
    }
    const std::int64_t past = misalignment(options.workspace, kWorkspaceAlignment);
    if (past != 0) return refuse_misaligned("workspace", past, kWorkspaceAlignment);
    return check_workers(options.executor, options.num_threads, options.spin_us);
}

Result<void> check_workspace(std::size_t given, std::size_t needed) {
    if (given >= needed) return {};
    return refuse(KVJIT_BAD_ARGUMENT, "workspace_bytes", static_cast<std::int64_t>(given),
                  static_cast<std::int64_t>(needed), text("this plan needs ", needed));
}

Result<void> check_no_cuda_options(const kvjit_plan_options& options) {
    const char* given = options.stream != nullptr       ? "stream"
                        : options.host_batch != nullptr ? "host_batch"
                                                        : split_option(options);
    if (given == nullptr) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, given, text(given, " is given; the kernel's target is a CPU"));
}

Result<void> check_cuda_options(const kvjit_plan_options& options, std::int64_t unit) {
    const char* given = worker_option(options);
    if (given != nullptr) {
        return gen::fail(KVJIT_BAD_ARGUMENT, given, text(given, " is given; the kernel's target is CUDA"));
    }
    if (auto decode = check_split("split_keys", options.split_keys, unit); !decode) return decode;
    return check_split("prefill_split_keys", options.prefill_split_keys, unit);
}

}  // namespace kvjit::rt
