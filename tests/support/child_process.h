// A process of its own for what can't be taken back: limits, policies, pools of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace kvjit::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;  // they forbid threads in forked processes, and fill the address space
#else
inline constexpr bool kSanitized = false;
#endif
#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif

/// What in_child returns where the process did not end by itself.
inline constexpr int kBroken = 255;

/// What `body` returns, 0 to 254, in a fork of this process.
int in_child(const std::function<int()>& body);

/// Address space that this process may still take. False if it can't be limited.
bool limit_address_space(std::size_t more_bytes);

}  // namespace kvjit::test
