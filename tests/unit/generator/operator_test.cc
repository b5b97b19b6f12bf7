// The table of operators, against what it must agree with: the table in kvjit.h, and itself.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "generator/operator.h"
#include "lowered.h"

using namespace kvjit::gen;

namespace {

const std::map<char, std::string> kAxes = {{'S', "S"}, {'K', "K"},     {'H', "H"}, {'G', "Hkv"},
                                           {'D', "D"}, {'R', "Hkv*R"}, {'P', "P"}, {'p', "P"}};

std::string axes_text(std::string_view axes) {
    std::string text = "(";
    for (const char axis : axes) text += (text.size() > 1 ? ", " : "") + kAxes.at(axis);
    return text + ")";
}

/// A cell as kvjit.h has it.
std::string cell(const OperatorTensor& tensor) {
    switch (tensor.use) {
        case TensorUse::kInput:
            return "in " + axes_text(tensor.axes);
        case TensorUse::kInputOpt:
        case TensorUse::kStored:
            return "in " + axes_text(tensor.axes) + ", opt.";
        case TensorUse::kMask:
        case TensorUse::kSinks:
            return "in (spec)";
        case TensorUse::kCache:
            return "in, out";
        case TensorUse::kScale:
            return "in, out q";
        case TensorUse::kOutput:
            return "out " + axes_text(tensor.axes);
        default:
            return "out " + axes_text(tensor.axes) + ", opt.";
    }
}

/// Split where two spaces stand.
std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells;
    for (std::size_t at = line.find_first_not_of(' '); at != line.npos;) {
        const std::size_t end = std::min(line.find("  ", at), line.size());
        cells.push_back(line.substr(at, end - at));
        at = line.find_first_not_of(' ', end);
    }
    return cells;
}

/// The header's table: operators' names, and by tensor its cells.
struct Table {
    std::vector<std::string> names;
    std::map<std::string, std::vector<std::string>> rows;
};

Table read_table() {
    Table table;
    std::ifstream header(KVJIT_HEADER);
    for (std::string line; std::getline(header, line);) {
        if (!line.starts_with(" *")) continue;
        const std::vector<std::string> cells = cells_of(line.substr(2));
        if (table.names.empty()) {
            if (!cells.empty() && cells[0] == operators()[0].name) table.names = cells;
            continue;
        }
        if (cells.empty()) break;
        for (const TensorName& tensor : tensor_names()) {
            const bool pair = (cells[0] == "current_key/value" && tensor.name.starts_with("current_")) ||
                              (cells[0] == "key, value" && (tensor.name == "key" || tensor.name == "value"));
            if (pair || cells[0] == tensor.name) {
                table.rows[std::string(tensor.name)] = {cells.begin() + 1, cells.end()};
            }
        }
    }
    return table;
}

}  // namespace

/// Those that some operator takes. What is there for later ones stands in the struct alone.
static std::size_t taken_tensors() {
    std::set<std::string_view> names;
    for (const Operator& op : operators()) {
        for (const OperatorTensor& tensor : op.tensors) names.insert(tensor.name);
    }
    return names.size();
}

TEST_CASE("the table in kvjit.h says what operators take and make") {
    const Table table = read_table();
    REQUIRE(table.names.size() == operators().size());
    REQUIRE(table.rows.size() == taken_tensors());
    for (std::size_t column = 0; column < table.names.size(); ++column) {
        const Operator& op = operators()[column];
        CHECK(table.names[column] == op.name);
        std::map<std::string, std::string> expected;
        for (const TensorName& tensor : tensor_names()) expected[std::string(tensor.name)] = "-";
        for (const OperatorTensor& tensor : op.tensors) expected[std::string(tensor.name)] = cell(tensor);
        for (const auto& [name, row] : table.rows) {
            CAPTURE(name);
            CAPTURE(op.name);
            REQUIRE(row.size() == table.names.size());
            CHECK(row[column] == expected[name]);
        }
    }
}

TEST_CASE("what an operator is follows from its row") {
    CHECK(has_cache(spec_of("op=KeyValueCache")));
    CHECK(loads(spec_of("op=KeyValueCache")));
    CHECK(!attends(spec_of("op=KeyValueCache")));
    CHECK(attends(spec_of("op=MultiHeadAttention")));
    CHECK(!has_cache(spec_of("op=MultiHeadAttention")));
    CHECK(has_keys(spec_of("op=MultiHeadAttention")));
    CHECK(attends(spec_of("op=MultiHeadCacheAttention")));
    CHECK(!has_keys(spec_of("op=Merge")));
    CHECK(!attends(spec_of("op=Merge")));
}
