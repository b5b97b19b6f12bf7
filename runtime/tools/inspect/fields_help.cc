#include "inspect/fields_help.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "kvjit/kvjit.h"

namespace kvjit::tool {
namespace {

struct FieldRow {
    std::string name, takes, def, help;
};

void collect(void* rows, const char* name, const char* takes, const char* def, const char* help) {
    static_cast<std::vector<FieldRow>*>(rows)->push_back({name, takes, def, help});
}

std::vector<FieldRow> all_rows() {
    std::vector<FieldRow> rows;
    kvjit_spec_fields(collect, &rows);
    return rows;
}

std::string help_text(const std::vector<FieldRow>& rows) {
    std::size_t width = 0;
    for (const FieldRow& row : rows) width = std::max(width, row.name.size());
    std::string help = "field=value, separated by commas or white space; defaults in brackets\n";
    for (const FieldRow& row : rows) {
        const std::string indent(width + 2, ' ');
        help += row.name + std::string(width - row.name.size() + 2, ' ') + row.help + "\n" + indent + row.takes + " [" +
                row.def + "]\n";
    }
    return help;
}

}  // namespace

std::string spec_fields_help() {
    return help_text(all_rows());
}

std::string call_fields_help() {
    constexpr std::string_view kRelayout = " | Relayout";
    std::vector<FieldRow> rows = all_rows();
    std::erase_if(rows, [](const FieldRow& row) { return row.name.starts_with("to_"); });
    std::string& operators = rows.front().takes;
    if (operators.ends_with(kRelayout)) operators.resize(operators.size() - kRelayout.size());
    return help_text(rows);
}

}  // namespace kvjit::tool
