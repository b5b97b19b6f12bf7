#include "inspect.h"

#include <algorithm>
#include <vector>

#include "handles.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

/// A kvjit_sink that appends to the std::string `to`.
void append(void* to, const char* text, size_t size) {
    static_cast<std::string*>(to)->append(text, size);
}

/// "decode, merge, store": the programs whose bits are in `programs`.
std::string names_of(std::uint32_t programs) {
    std::string names;
    for (const auto& [name, bit] : program_names()) {
        if (bit != KVJIT_ALL_PROGRAMS && (bit & programs) != 0) names += (names.empty() ? "" : ", ") + name;
    }
    return names;
}

/// The library tells programs by bits, the user by names.
std::string failure_of(const InspectOptions& options, const kvjit_error& error) {
    if (error.argument != std::string("programs")) return error_text(error);
    const bool too_many = (error.value & error.limit) != 0;
    return "--program is " + options.program + "; on " + options.target + " this op has " +
           names_of(static_cast<std::uint32_t>(error.limit)) + (too_many ? ": name one" : "");
}

Result<void> emit(const InspectOptions& options, kvjit_kernel* kernel, std::string& shown) {
    kvjit_error error;
    kvjit_error_init(&error);
    const auto status =
        kvjit_kernel_emit(kernel, program_names().at(options.program), options.stage, append, &shown, &error);
    if (status != KVJIT_OK) return fail(failure_of(options, error));
    return {};
}

using Row = std::vector<std::string>;

std::string table_text(const std::vector<Row>& rows) {
    const std::size_t columns = rows.front().size();
    std::vector<std::size_t> widths(columns, 0);
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const Row& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < columns; ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
}

void take_image(void* to, const kvjit_image_info* info) {
    static const char* const origins[] = {"none", "compiled", "disk", "bundle"};
    const std::string bytes = info->origin == KVJIT_ORIGIN_NONE ? "-" : std::to_string(info->object_bytes);
    const std::string algorithm = info->variant + (" revision " + std::to_string(info->revision));
    static_cast<std::vector<Row>*>(to)->push_back({names_of(info->program), origins[info->origin], bytes, algorithm,
                                                   info->name, info->target, escaped(info->place)});
}

/// Lists each program separately, since some may fail. Returns why they did.
std::string list_each(std::uint32_t programs, kvjit_kernel* kernel, std::vector<Row>& rows) {
    kvjit_error error;
    kvjit_error_init(&error);
    std::string reasons;
    for (const auto& [name, bit] : program_names()) {
        if (bit == KVJIT_ALL_PROGRAMS || (bit & programs) == 0) continue;
        const auto status = kvjit_kernel_images(kernel, bit, take_image, &rows, &error);
        const bool is_lacking = status == KVJIT_BAD_ARGUMENT;  // the op lacks the program
        if (status != KVJIT_OK && !is_lacking)
            reasons += (reasons.empty() ? "" : "; ") + name + ": " + error_text(error);
    }
    return reasons;
}

Result<void> list_images(const InspectOptions& options, kvjit_kernel* kernel, std::string& shown) {
    kvjit_error error;
    kvjit_error_init(&error);
    std::vector<Row> rows = {{"program", "origin", "bytes", "algorithm", "image", "target", "place"}};
    const std::uint32_t programs = program_names().at(options.program);
    const auto status = kvjit_kernel_images(kernel, programs, take_image, &rows, &error);
    if (status != KVJIT_OK && status != KVJIT_BAD_FILE) return fail(failure_of(options, error));
    const std::string reasons = status == KVJIT_OK ? "" : list_each(programs, kernel, rows);
    shown = table_text(rows);
    if (!reasons.empty()) return fail(reasons);
    return {};
}

/// Precondition: the spec is legal, so that an error means that there is no kernel for it.
Result<void> explain(const InspectOptions& options, kvjit_engine* engine, const kvjit_spec& spec,
                     const kvjit_target* target, std::string& shown) {
    kvjit_error error;
    kvjit_error_init(&error);
    const std::uint32_t programs = program_names().at(options.program);
    const auto status = kvjit_engine_explain(engine, &spec, target, programs, append, &shown, &error);
    if (status == KVJIT_BAD_SPEC) {
        return fail("no kernel of this spec exists on " + options.target + ": " + error_text(error));
    }
    if (status != KVJIT_OK) return fail(failure_of(options, error));
    return {};
}

Result<void> add_bundles(const InspectOptions& options, kvjit_engine* engine) {
    kvjit_error error;
    kvjit_error_init(&error);
    for (const std::string& path : options.bundles) {
        if (kvjit_engine_add_bundle(engine, path.c_str(), &error) != KVJIT_OK) return fail(error_text(error));
    }
    return {};
}

/// Fills `shown`, which after a failure may hold text to print besides the error.
Result<void> show(const InspectOptions& options, std::string& shown) {
    kvjit_error error;
    kvjit_error_init(&error);
    kvjit_spec spec;
    if (kvjit_spec_parse(options.spec.c_str(), &spec, &error) != KVJIT_OK) return fail(escaped(error_text(error)));
    const auto target = open_target(options.target);
    if (!target) return fail(target.error());
    const auto engine = open_engine(nullptr);
    if (!engine) return fail(engine.error());
    if (auto added = add_bundles(options, engine->get()); !added) return added;
    if (options.why) return explain(options, engine->get(), spec, target->get(), shown);
    const auto kernel = open_kernel(engine->get(), spec, target->get());
    if (!kernel) return fail(kernel.error());
    const auto part = options.images ? list_images : emit;
    return part(options, kernel->get(), shown);
}

bool is_binary(const InspectOptions& options) {
    return options.stage == KVJIT_STAGE_OBJECT && !options.why && !options.images;
}

Result<void> inspect_one(const InspectOptions& options) {
    if (is_binary(options) && !options.write && output_is_terminal()) {
        return fail("an object is no text for a terminal: -o FILE, or > FILE");
    }
    std::string shown;
    const auto done = show(options, shown);
    if (!options.write) {
        print(shown);
    } else if (done) {
        return options.write(shown);
    }
    return done;
}

struct FieldRow {
    std::string name, takes, def, help;
};

void collect(void* rows, const char* name, const char* takes, const char* def, const char* help) {
    static_cast<std::vector<FieldRow>*>(rows)->push_back({name, takes, def, help});
}

void collect_program(void* programs, std::uint32_t program, const char* name) {
    static_cast<std::map<std::string, std::uint32_t>*>(programs)->emplace(name, program);
}

}  // namespace

std::map<std::string, std::uint32_t> program_names() {
    std::map<std::string, std::uint32_t> programs{{"all", KVJIT_ALL_PROGRAMS}};
    kvjit_program_list(collect_program, &programs);
    return programs;
}

int inspect(const InspectOptions& options) {
    const auto done = inspect_one(options);
    if (done) return kExitOk;
    complain(done.error());
    return kExitBadInput;
}

std::string spec_fields_help() {
    std::vector<FieldRow> rows;
    kvjit_spec_fields(collect, &rows);
    std::size_t width = 0;
    for (const FieldRow& row : rows) width = std::max(width, row.name.size());
    std::string help = "Fields of SPEC (field=value, separated by commas or white space; defaults in brackets):\n";
    for (const FieldRow& row : rows) {
        const std::string indent(width + 4, ' ');
        help += "  " + row.name + std::string(width - row.name.size() + 2, ' ') + row.help + "\n" + indent + row.takes +
                " [" + row.def + "]\n";
    }
    return help;
}

}  // namespace kvjit::tool
