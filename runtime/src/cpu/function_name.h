#pragma once

#include <string>

namespace kvjit::rt {

/// A kernel's function as profilers show it: "attend_decode-4f1c09d2:kvjit::score_chunk".
std::string shown_name(const std::string& program, const std::string& symbol);

}  // namespace kvjit::rt
