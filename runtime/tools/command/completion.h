// Scripts that complete `kvjit` in shells, made from the commands' own options.
#pragma once

#include <string>

#include "command/command.h"

namespace kvjit::tool {

std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);

}  // namespace kvjit::tool
