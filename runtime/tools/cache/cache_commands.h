// The commands of `kvjit cache`.
#pragma once

#include "command/command.h"

namespace kvjit::tool {

extern const Command kCacheList, kCacheVerify, kCachePrune, kCacheClear;

}  // namespace kvjit::tool
