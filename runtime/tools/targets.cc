#include "targets.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kvjit/kvjit.h"
#include "result.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Row {
    std::string name, help;
};

void collect(void* rows, const char* name, const char* help) {
    static_cast<std::vector<Row>*>(rows)->push_back({name, help});
}

}  // namespace

int targets(const TargetsOptions& options) {
    std::vector<Row> rows;
    kvjit_target_list(collect, &rows);
    std::size_t width = 0;
    for (const Row& row : rows) width = std::max(width, row.name.size());
    for (const Row& row : rows) {
        print(row.name);
        if (!options.names) print(std::string(width - row.name.size() + 2, ' ') + row.help);
        print("\n");
    }
    return kExitOk;
}

}  // namespace kvjit::tool
