#include "large_stack.h"

#include <utility>

namespace kvjit::rt {
namespace {

constexpr unsigned kStackBytes = 8U << 20;

void* run_job(void* job) {
    (*static_cast<std::function<void()>*>(job))();
    return nullptr;
}

}  // namespace

LargeStackThread::LargeStackThread(std::function<void()> job) : job_(std::move(job)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    started_ = pthread_create(&thread_, &attributes, run_job, &job_) == 0;
    pthread_attr_destroy(&attributes);
}

void LargeStackThread::wait() {
    if (!job_) return;
    if (started_)
        pthread_join(thread_, nullptr);
    else
        job_();
    job_ = nullptr;
}

}  // namespace kvjit::rt
