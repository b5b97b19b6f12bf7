// Listings as nvdisasm prints them, from lines written by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inspect/sass/code.h"

namespace kvjit::tool::sass {

using Lines = std::vector<std::string>;

/// Of labels (".L_x_1:") and instructions ("@P0 BRA `(.L_x_1)"), which are 16 bytes apart.
std::string listing_of(const Lines& lines);
Code code_of(const Lines& lines);
Instruction instruction_of(const std::string& line);

/// `times` copies of the lines.
Lines repeated(const Lines& lines, int times);
/// All of them, one after another.
Lines joined(const std::vector<Lines>& parts);

/// Decode's loop over tiles as a sketch: a wait, copies under a branch, products, the rescaling that most tiles leave
/// out.
extern const Lines kDecode;

}  // namespace kvjit::tool::sass
