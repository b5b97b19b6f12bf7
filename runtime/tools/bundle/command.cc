// `kvjit bundle`: its commands.
#include "bundle/bundle_commands.h"
#include "commands.h"

namespace kvjit::tool {
namespace {

constexpr const Command* kCommands[] = {&kBundleCreate, &kBundleList, &kBundleVerify, &kBundleExtract,
                                        &kBundleMerge,  &kBundleDiff, &kBundleSign};

}  // namespace

constinit const Command kBundleCommand = {
    .name = "bundle",
    .summary = "Make, look at and sign bundles: kernels made ahead, in one file",
    .commands = kCommands,
    .about =
        "A bundle is one file of kernels that were made ahead, for any target: a program that adds it to its engine "
        "(kvjit_engine_add_bundle) compiles nothing and needs no compiler. docs/bundles.md has the whole story.",
    .examples =
        "kvjit bundle create kernels.kvjb --specs specs.txt --targets x86-64-v3,x86-64-v4,sm_80\n"
        "kvjit bundle list kernels.kvjb\n"
        "kvjit bundle create --help\n"};

}  // namespace kvjit::tool
