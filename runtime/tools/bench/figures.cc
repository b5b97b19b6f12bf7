#include "bench/figures.h"

#include <algorithm>
#include <cmath>

#include "bench/report.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

/// An object of the report. Errors say where it stands, a field's name, what the field is and what is expected.
class Part {
public:
    Part(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

    Result<std::string> text(const char* field) const {
        const Json* found = find(field);
        return found && found->is_string() ? Result<std::string>(*found) : wrong(field, "a text");
    }
    Result<std::int64_t> count(const char* field) const {
        const Json* found = find(field);
        const bool counts = found && found->is_number_integer() && *found >= 1;
        return counts ? Result<std::int64_t>(*found) : wrong(field, "an integer above 0");
    }
    Result<double> time(const char* field) const { return number(field, std::nextafter(0, 1), "a number above 0"); }
    Result<double> share(const char* field) const { return number(field, 0, "a number from 0 on"); }
    Result<std::reference_wrapper<const Json>> rows(const char* field) const {
        const Json* found = find(field);
        if (found && found->is_array()) return std::cref(*found);
        return wrong(field, "an array");
    }
    std::unexpected<std::string> wrong(const char* field, const std::string& expected) const {
        return fail(place_ + "field '" + field + "' " + what_is(find(field)) + ", expected " + expected);
    }

private:
    const Json* find(const char* field) const {
        const auto found = json_.find(field);
        return found == json_.end() ? nullptr : &*found;
    }
    static std::string what_is(const Json* value) {
        if (!value) return "is missing";
        if (value->is_structured()) return std::string("is an ") + value->type_name();
        return "is " + (value->is_string() ? in_quotes(std::string(*value)) : value->dump());
    }
    Result<double> number(const char* field, double least, const char* expected) const {
        const Json* found = find(field);
        const bool is_number = found && found->is_number() && std::isfinite(double(*found)) && *found >= least;
        return is_number ? Result<double>(*found) : wrong(field, expected);
    }

    const Json& json_;
    std::string place_;
};

Result<BenchFigure> read_row(const Part& row) {
    const auto spec = row.text("spec"), batch = row.text("batch");
    const auto layers = row.count("layers");
    const auto milliseconds = row.time("ms"), reading = row.share("share_of_reading"),
               arithmetic = row.share("share_of_multiply_add");
    for (const auto* each : {&spec, &batch}) {
        if (!*each) return fail(each->error());
    }
    if (!layers) return fail(layers.error());
    for (const auto* each : {&milliseconds, &reading, &arithmetic}) {
        if (!*each) return fail(each->error());
    }
    return BenchFigure{*spec, *batch, *layers, *milliseconds, std::max(*reading, *arithmetic)};
}

Result<BenchFigures> read_report(const Json& json) {
    const Part report(json, "");
    const auto format = report.text("format");
    if (!format || *format != kBenchFormat) return report.wrong("format", std::string(kBenchFormat));
    const auto device = report.text("device"), target = report.text("target");
    if (!device || !target) return fail(device ? target.error() : device.error());
    const auto rows = report.rows("rows");
    if (!rows) return fail(rows.error());
    BenchFigures figures{.machine = *device + ", target " + *target, .rows = {}};
    for (const Json& json_row : rows->get()) {
        auto row = read_row({json_row, "row " + std::to_string(figures.rows.size() + 1) + ": "});
        if (!row) return fail(row.error());
        figures.rows.push_back(*std::move(row));
    }
    return figures;
}

}  // namespace

Result<BenchFigures> read_bench_json(const std::string& text, const std::string& name) {
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    Result<BenchFigures> figures = json.is_discarded() ? fail("it is no JSON, or not all of it") : read_report(json);
    if (!figures) return fail(in_quotes(name) + " is not what kvjit bench --json prints: " + figures.error());
    return figures;
}

}  // namespace kvjit::tool
