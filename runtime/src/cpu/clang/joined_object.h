// Two relocatable objects as one.
#pragma once

#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/Error.h>

namespace kvjit::rt {

/// What `ld -r` would make of two ELF objects for x86-64 as LLVM writes them: sections of one name follow each other,
/// and what one object lacks and the other defines is found there. Of two weak definitions the first one counts; groups
/// of sections are no longer groups. An object whose sections refer to each other in other ways is refused.
llvm::Expected<llvm::SmallString<0>> join_objects(llvm::StringRef first, llvm::StringRef second);

}  // namespace kvjit::rt
