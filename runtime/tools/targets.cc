// `kvjit targets`: the names that --target takes.
#include <algorithm>
#include <memory>
#include <vector>

#include "command/options.h"
#include "commands.h"
#include "kvjit/kvjit.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Row {
    std::string name, help;
};

void collect(void* rows, const char* name, const char* help) {
    static_cast<std::vector<Row>*>(rows)->push_back({name, help});
}

int list(bool names_only) {
    std::vector<Row> rows;
    kvjit_target_list(collect, &rows);
    std::size_t width = 0;
    for (const Row& row : rows) width = std::max(width, row.name.size());
    for (const Row& row : rows) {
        print(row.name);
        if (!names_only) print(std::string(width - row.name.size() + 2, ' ') + row.help);
        print("\n");
    }
    return kExitOk;
}

Action declare(Options& options) {
    auto names_only = std::make_shared<bool>(false);
    options.flag("--names", *names_only, "Names alone, a line each");
    return [names_only] { return Result<int>(list(*names_only)); };
}

}  // namespace

constinit const Command kTargetsCommand = {
    .name = "targets",
    .summary = "List the targets that kernels can be made for",
    .declare = declare,
    .about =
        "CPU levels also take further features: x86-64-v3+avxvnni. Architectures that only an installed NVRTC "
        "knows are not in the list.",
    .examples =
        "kvjit targets\n"
        "kvjit targets --names | grep sm_\n"};

}  // namespace kvjit::tool
