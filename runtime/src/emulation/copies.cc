#include "emulation/copies.h"

#include <cstring>

namespace kvjit::emulation {
namespace {

constexpr int kPoison = 0xff;  // NaN as float32 and as float16

}  // namespace

void Copies::issue(char* to, const char* from, i64 bytes, const void* where) {
    pending_.push_back({to, from, bytes, where, open_});
    std::memset(to, kPoison, static_cast<std::size_t>(bytes));
}

void Copies::perform(const Copy& copy) {
    const auto bytes = static_cast<std::size_t>(copy.bytes);
    if (copy.from)
        std::memcpy(copy.to, copy.from, bytes);
    else
        std::memset(copy.to, 0, bytes);
}

}  // namespace kvjit::emulation
