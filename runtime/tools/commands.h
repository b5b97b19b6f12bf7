// The commands of `kvjit`, each in a file of its own.
#pragma once

#include "command/command.h"

namespace kvjit::tool {

extern const Command kReplayCommand, kRecordCommand, kInspectCommand, kBenchCommand, kCompareCommand, kBundleCommand,
    kCacheCommand, kSpecCommand, kTargetsCommand, kDoctorCommand, kCompletionCommand, kHelpCommand;

}  // namespace kvjit::tool
