#include "record/setting.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "check/fault.h"
#include "generator/program.h"

namespace kvjit::rt {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

struct Number {
    std::string_view name;
    std::int64_t least;
    void (*set)(RecordSetting&, std::int64_t);
};
constexpr Number kNumbers[] = {
    {"layer", 0, [](RecordSetting& setting, std::int64_t value) { setting.layer = value; }},
    {"call", 1, [](RecordSetting& setting, std::int64_t value) { setting.call = value; }},
    {"every", 1, [](RecordSetting& setting, std::int64_t value) { setting.every = value; }},
    {"max_files", 1, [](RecordSetting& setting, std::int64_t value) { setting.max_files = value; }},
    {"max_bytes", 1, [](RecordSetting& setting, std::int64_t value) { setting.max_bytes = value; }},
};

[[nodiscard]] std::unexpected<gen::Error> refuse_word(std::string_view word, std::string_view why) {
    return gen::fail(KVJIT_BAD_ARGUMENT, "record",
                     text("record has \"", word, "\"; ", why,
                          "; it takes DIR or DIR:name=value,... with the names call, every, layer, program, max_files, "
                          "max_bytes and the fields of a spec"));
}

gen::Result<void> take_number(const Number& number, std::string_view word, std::string_view value,
                              RecordSetting& setting) {
    std::int64_t read = 0;
    const char* end = value.data() + value.size();
    const auto [stopped, error] = std::from_chars(value.data(), end, read);
    if (error != std::errc() || stopped != end || read < number.least) {
        return refuse_word(word, text("its value is a whole number from ", number.least, " to ", kMost));
    }
    number.set(setting, read);
    return {};
}

gen::Result<void> take_program(std::string_view word, std::string_view value, RecordSetting& setting) {
    const auto all = gen::programs();
    const auto found = std::ranges::find(all, value, &gen::ProgramInfo::label);
    if (found == all.end() || found->bit == KVJIT_PROGRAM_RELAYOUT) {
        return refuse_word(word, "no recorded call runs such a program");
    }
    setting.programs = found->bit;
    return {};
}

/// `words`: of which each has one field's value, together a text of a spec.
gen::Result<void> take_spec(std::string_view words, RecordSetting& setting) {
    const gen::Result<gen::KernelSpec> read = gen::parse_fields(words);
    if (!read) return gen::fail(KVJIT_BAD_ARGUMENT, "record", text("record: ", read.error().message));
    setting.spec = *read;
    const gen::KernelSpec defaults = gen::default_spec();
    for (const gen::Field& field : gen::spec_fields()) {
        const bool given = words.starts_with(text(field.name, "=")) || words.contains(text(",", field.name, "="));
        // A layout's name sets further fields.
        if (given || field.print(*read) != field.print(defaults)) setting.fields.push_back(&field);
    }
    if (gen::is_relayout(*read)) return refuse_word("op=Relayout", "calls of Relayout aren't recorded");
    return {};
}

gen::Result<void> take_word(std::string_view word, std::string& spec_words, RecordSetting& setting) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) return refuse_word(word, "it has no =");
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "program") return take_program(word, value, setting);
    const auto number = std::ranges::find(kNumbers, name, &Number::name);
    if (number != std::end(kNumbers)) return take_number(*number, word, value, setting);
    if (std::ranges::find(gen::spec_fields(), name, &gen::Field::name) == gen::spec_fields().end()) {
        return refuse_word(word, "there is no such name");
    }
    spec_words.append(spec_words.empty() ? "" : ",").append(word);
    return {};
}

}  // namespace

bool RecordSetting::agrees(const gen::KernelSpec& other) const {
    return std::ranges::all_of(fields,
                               [&](const gen::Field* field) { return field->print(spec) == field->print(other); });
}

gen::Result<RecordSetting> parse_record_setting(std::string_view given) {
    RecordSetting setting;
    const std::size_t colon = given.find(':');
    setting.folder = given.substr(0, colon);
    if (setting.folder.empty()) return refuse_word(given, "the folder is missing");
    std::string spec_words;
    std::string_view rest = colon == given.npos ? std::string_view() : given.substr(colon + 1);
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
        if (auto taken = take_word(word, spec_words, setting); !taken) return std::unexpected(taken.error());
    }
    if (auto taken = take_spec(spec_words, setting); !taken) return std::unexpected(taken.error());
    return setting;
}

}  // namespace kvjit::rt
