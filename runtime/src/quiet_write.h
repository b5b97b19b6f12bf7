// Writing without signals.
#pragma once

#include <string_view>

namespace kvjit::rt {

/// write(2) of all bytes, on through interruptions and short writes. The signals that a failure sends, SIGPIPE where no
/// one reads any more and SIGXFSZ past `ulimit -f`, do not reach the process, which they would end. Returns 0 or
/// -errno; `rest` becomes what was not written. Thread-safe.
int write_quietly(int file, std::string_view& rest);

}  // namespace kvjit::rt
