#include "inspect.h"

#include <algorithm>
#include <vector>

#include "handles.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

void print_piece(void*, const char* text, size_t size) {
    print({text, size});
}

/// "decode, merge, store": the programs whose bits are in `programs`.
std::string names_of(std::uint32_t programs) {
    std::string names;
    for (const auto& [name, bit] : kPrograms) {
        if (bit != KVJIT_ALL_PROGRAMS && (bit & programs) != 0) names += (names.empty() ? "" : ", ") + name;
    }
    return names;
}

/// The library tells programs by bits, the user by names.
std::string failure_of(const InspectOptions& options, const kvjit_error& error) {
    if (error.argument != std::string("programs")) return error_text(error);
    return "--program is " + options.program + "; on " + options.target + " this op has " +
           names_of(static_cast<std::uint32_t>(error.limit));
}

Result<void> emit(const InspectOptions& options, kvjit_engine* engine, const kvjit_spec& spec,
                  const kvjit_target* target) {
    const auto kernel = open_kernel(engine, spec, target);
    if (!kernel) return fail(kernel.error());
    kvjit_error error;
    kvjit_error_init(&error);
    const std::uint32_t programs = kPrograms.at(options.program);
    const auto status = kvjit_kernel_emit(kernel->get(), programs, options.stage, print_piece, nullptr, &error);
    if (status != KVJIT_OK) return fail(failure_of(options, error));
    return {};
}

/// The spec has been checked: it is refused only where there is no kernel.
Result<void> explain(const InspectOptions& options, kvjit_engine* engine, const kvjit_spec& spec,
                     const kvjit_target* target) {
    kvjit_error error;
    kvjit_error_init(&error);
    const std::uint32_t programs = kPrograms.at(options.program);
    const auto status = kvjit_engine_explain(engine, &spec, target, programs, print_piece, nullptr, &error);
    if (status == KVJIT_BAD_SPEC) {
        return fail("no kernel of this spec exists on " + options.target + ": " + error_text(error));
    }
    if (status != KVJIT_OK) return fail(failure_of(options, error));
    return {};
}

Result<void> show(const InspectOptions& options) {
    kvjit_error error;
    kvjit_error_init(&error);
    kvjit_spec spec;
    if (kvjit_spec_parse(options.spec.c_str(), &spec, &error) != KVJIT_OK) return fail(escaped(error_text(error)));
    const auto target = open_target(options.target);
    if (!target) return fail(target.error());
    const auto engine = open_engine(nullptr);
    if (!engine) return fail(engine.error());
    const auto part = options.why ? explain : emit;
    return part(options, engine->get(), spec, target->get());
}

struct FieldRow {
    std::string name, takes, def, help;
};

void collect(void* rows, const char* name, const char* takes, const char* def, const char* help) {
    static_cast<std::vector<FieldRow>*>(rows)->push_back({name, takes, def, help});
}

}  // namespace

const std::map<std::string, std::uint32_t> kPrograms = {
    {"store", KVJIT_PROGRAM_STORE},     {"load", KVJIT_PROGRAM_LOAD},   {"decode", KVJIT_PROGRAM_DECODE},
    {"prefill", KVJIT_PROGRAM_PREFILL}, {"merge", KVJIT_PROGRAM_MERGE}, {"check", KVJIT_PROGRAM_CHECK},
    {"all", KVJIT_ALL_PROGRAMS}};

int inspect(const InspectOptions& options) {
    const auto shown = show(options);
    if (shown) return kExitOk;
    complain(shown.error());
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
