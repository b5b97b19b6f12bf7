// `kvjit spec list`: fields, operators, values and layouts.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "command/options.h"
#include "command/words.h"
#include "generator/operator.h"
#include "generator/spec.h"
#include "json.h"
#include "kvjit/kvjit.h"
#include "spec/spec_commands.h"
#include "table.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

using Row = std::vector<std::string>;

struct Request {
    std::string what, field;
    bool names_only = false, json = false;
};

void collect_layout(void* rows, const char* name, const char* order, const char* sets, const char* users) {
    static_cast<std::vector<Row>*>(rows)->push_back({name, order, sets, users});
}

std::vector<Row> layouts() {
    std::vector<Row> rows = {{"layout=", "axes", "sets", "whose"}};
    kvjit_spec_layouts(collect_layout, &rows);
    return rows;
}

std::vector<Row> fields() {
    std::vector<Row> rows = {{"field", "default", "meaning", "takes"}};
    const gen::KernelSpec defaults = gen::default_spec();
    for (const gen::Field& field : gen::spec_fields()) {
        rows.push_back(
            {std::string(field.name), field.print(defaults), std::string(field.help), std::string(field.takes)});
    }
    return rows;
}

std::vector<Row> ops() {
    std::vector<Row> rows = {{"op=", "tensors of a run"}};
    for (const gen::Operator& op : gen::operators()) {
        std::vector<std::string> tensors;
        for (const gen::OperatorTensor& tensor : op.tensors) tensors.emplace_back(tensor.name);
        rows.push_back({std::string(op.name), joined(tensors)});
    }
    return rows;
}

std::vector<std::string> field_names() {
    std::vector<std::string> names;
    for (const gen::Field& field : gen::spec_fields()) names.emplace_back(field.name);
    return names;
}

/// Precondition: there is such a field.
std::vector<Row> values(const std::string& name) {
    const gen::Field& field = *std::ranges::find(gen::spec_fields(), name, &gen::Field::name);
    std::vector<Row> rows = {{name + "="}};
    for (const std::string_view value : field.values()) rows.push_back({std::string(value)});
    if (rows.size() == 1) rows.push_back({std::string(field.takes)});
    return rows;
}

std::vector<Row> rows_of(const Request& request) {
    if (request.what == "layouts") return layouts();
    if (request.what == "fields") return fields();
    return request.what == "ops" ? ops() : values(request.field);
}

/// An object for each row, by the columns' names without "=".
Json json_of(const std::vector<Row>& rows) {
    Json all = Json::array();
    for (std::size_t i = 1; i < rows.size(); ++i) {
        Json object;
        for (std::size_t column = 0; column < rows[i].size(); ++column) {
            std::string name = rows[0][column];
            if (name.ends_with('=')) name.pop_back();
            object[name] = rows[i][column];
        }
        all.push_back(std::move(object));
    }
    return all;
}

Result<int> list(const Request& request) {
    const std::vector<Row> rows = rows_of(request);
    if (request.json) {
        print(dump(json_of(rows)));
    } else if (request.names_only) {
        for (std::size_t i = 1; i < rows.size(); ++i) print(rows[i][0] + "\n");
    } else {
        print(table_text(rows));
    }
    return kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.choice("WHAT", request->what, {"fields", "ops", "values", "layouts"}, "What to list")->required();
    options.choice("FIELD", request->field, field_names(), "The field whose values are listed, of values alone");
    CLI::Option* names = options.flag("--names", request->names_only, "Names alone, a line each");
    options.json(request->json)->excludes(names);
    options.check([&request = *request]() -> Result<void> {
        if (request.what == "values" && request.field.empty()) return fail("FIELD is missing");
        if (request.what != "values" && !request.field.empty()) {
            return fail(in_quotes(request.field) + " is one word too many");
        }
        return {};
    });
    return [request] { return list(*request); };
}

}  // namespace

constinit const Command kSpecList = {
    .name = "list",
    .summary = "List the fields of a spec, operators, a field's values, or engines' layouts",
    .declare = declare,
    .about =
        "A layout's name stands for an order of axes (N block, T token, L layer, 2 key or value, H kv head, D "
        "element) and sets further fields, which may not be given otherwise: docs/layouts.md.",
    .examples =
        "kvjit spec list fields\n"
        "kvjit spec list values cache_mode\n"
        "kvjit spec list layouts\n"
        "kvjit spec list layouts --names | grep vllm\n"
        "kvjit inspect layout=vllm:LBNHC,page_size=16,head_dim=128\n"};

}  // namespace kvjit::tool
