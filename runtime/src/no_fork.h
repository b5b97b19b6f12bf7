// Keeps a forked process from inheriting what only another thread could finish.
#pragma once

namespace kvjit::rt {

/// While one lives, a fork by another thread waits. A child has the forking thread alone: it would wait for ever for a
/// mutex that another one holds, or for an image that another one makes. So whoever takes a mutex that a child may need
/// has one of these first. They nest. A thread that has one and forks, in a callback, waits for no other. Threads that
/// a holder waits for must not take one of their own.
class NoFork {
public:
    NoFork();
    ~NoFork();
    NoFork(const NoFork&) = delete;
    NoFork& operator=(const NoFork&) = delete;
};

}  // namespace kvjit::rt
