#include "no_fork.h"

#include <pthread.h>

#include <new>

namespace kvjit::rt {
namespace {

/// Shared by those that keep the process from forking, taken alone by a fork. A fork that waits goes before newcomers,
/// or busy threads would hold it off for ever.
class Gate {
public:
    Gate() {
        if (!make() || pthread_atfork(before_fork, in_parent, in_child) != 0) throw std::bad_alloc();
    }

    void enter() {
        if (nested++ == 0) pthread_rwlock_rdlock(&lock_);
    }
    void leave() {
        if (--nested == 0) pthread_rwlock_unlock(&lock_);
    }

private:
    static void before_fork();
    static void in_parent();
    static void in_child();

    bool make() {
        pthread_rwlockattr_t attributes;
        if (pthread_rwlockattr_init(&attributes) != 0) return false;
        pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        return pthread_rwlock_init(&lock_, &attributes) == 0;
    }

    static thread_local int nested;  // NoForks of this thread
    pthread_rwlock_t lock_;
};

thread_local int Gate::nested = 0;

/// Never destroyed: at the process's end threads may still run.
Gate& gate() {
    static auto& gate = *new Gate;
    return gate;
}

void Gate::before_fork() {
    if (nested == 0) pthread_rwlock_wrlock(&gate().lock_);
}

void Gate::in_parent() {
    if (nested == 0) pthread_rwlock_unlock(&gate().lock_);
}

/// The lock still names threads that the child lacks.
void Gate::in_child() {
    gate().make();
    if (nested != 0) pthread_rwlock_rdlock(&gate().lock_);
}

}  // namespace

NoFork::NoFork() {
    gate().enter();
}

NoFork::~NoFork() {
    gate().leave();
}

}  // namespace kvjit::rt
