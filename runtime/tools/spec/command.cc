// `kvjit spec`: its commands.
#include "commands.h"
#include "spec/spec_commands.h"

namespace kvjit::tool {
namespace {

constexpr const Command* kCommands[] = {&kSpecExplain, &kSpecList};

}  // namespace

constinit const Command kSpecCommand = {.name = "spec",
                                        .summary = "Show what a spec says, and what its fields take",
                                        .commands = kCommands,
                                        .examples =
                                            "kvjit spec explain layout=vllm:LBNHC page_size=16 quant_bit=8\n"
                                            "kvjit spec list layouts\n"};

}  // namespace kvjit::tool
