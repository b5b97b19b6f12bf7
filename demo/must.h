// The demo ends at the first refused call, with kvjit's own sentence.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "kvjit/kvjit.hpp"

namespace demo {

template <class T>
T must(kvjit::Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message());
    return *std::move(result);
}

inline void must(const kvjit::Result<void>& result) {
    if (!result) throw std::runtime_error(result.error().message());
}

}  // namespace demo
