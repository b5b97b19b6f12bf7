#include "spec.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "kvjit/kvjit.h"
#include "result.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::size_t kColumns = 4;
using Row = std::array<std::string, kColumns>;

void collect(void* rows, const char* name, const char* order, const char* sets, const char* users) {
    static_cast<std::vector<Row>*>(rows)->push_back({name, order, sets, users});
}

/// The last column is not padded.
void print_row(const Row& row, const std::array<std::size_t, kColumns>& widths) {
    std::string line;
    for (std::size_t i = 0; i < kColumns; ++i) {
        line += row[i];
        if (i + 1 < kColumns) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    print(line + "\n");
}

}  // namespace

int list_layouts(const SpecListOptions& options) {
    std::vector<Row> rows;
    if (!options.names) rows.push_back({"layout=", "axes", "sets", "whose"});
    kvjit_spec_layouts(collect, &rows);
    std::array<std::size_t, kColumns> widths{};
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const Row& row : rows) options.names ? print(row[0] + "\n") : print_row(row, widths);
    return kExitOk;
}

}  // namespace kvjit::tool
