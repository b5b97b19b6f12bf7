// The two functions that Clang may call on its own (for struct copies and `= {}`). They are defined here, hidden,
// because a kernel may have no undefined symbol, and as plain loops, because no hot path calls them.
#pragma once

#pragma GCC visibility push(hidden)
extern "C" {

[[gnu::used, clang::no_builtin]] inline void* memset(void* to, int value, __SIZE_TYPE__ bytes) {
    char* p = static_cast<char*>(to);
#pragma clang loop vectorize(disable) unroll(disable)
    for (__SIZE_TYPE__ i = 0; i < bytes; ++i) p[i] = static_cast<char>(value);
    return to;
}

[[gnu::used, clang::no_builtin]] inline void* memcpy(void* to, const void* from, __SIZE_TYPE__ bytes) {
    char* p = static_cast<char*>(to);
    const char* q = static_cast<const char*>(from);
#pragma clang loop vectorize(disable) unroll(disable)
    for (__SIZE_TYPE__ i = 0; i < bytes; ++i) p[i] = q[i];
    return to;
}

}  // extern "C"
#pragma GCC visibility pop
