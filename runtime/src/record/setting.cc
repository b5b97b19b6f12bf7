#include "record/setting.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "check/fault.h"
#include "generator/nearest.h"
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

/// Programs that tell calls apart. The check of index arrays doesn't: a GPU runs it before every call that it checks.
constexpr std::uint32_t kNoProgramToChoose = KVJIT_PROGRAM_RELAYOUT | KVJIT_PROGRAM_CHECK;

std::vector<std::string_view> names_to_choose() {
    std::vector<std::string_view> names = {"program"};
    for (const Number& number : kNumbers) names.push_back(number.name);
    for (const gen::Field& field : gen::spec_fields()) names.push_back(field.name);
    return names;
}

std::vector<std::string_view> programs_to_choose() {
    std::vector<std::string_view> names;
    for (const gen::ProgramInfo& program : gen::programs()) {
        if ((program.bit & kNoProgramToChoose) == 0) names.push_back(program.label);
    }
    return names;
}

std::string listed(const std::vector<std::string_view>& names) {
    std::string text;
    for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
    return text;
}

/// Reads a setting, word by word.
class Reader {
public:
    /// `called`: what messages call the setting.
    explicit Reader(std::string_view called) : called_(called) {}

    gen::Result<RecordSetting> read(std::string_view given) {
        const std::size_t colon = given.find(':');
        setting_.folder = given.substr(0, colon);
        if (setting_.folder.empty()) return refuse(given, "the folder is missing");
        std::string_view rest = colon == given.npos ? std::string_view() : given.substr(colon + 1);
        while (!rest.empty()) {
            const std::string_view word = rest.substr(0, rest.find(','));
            rest.remove_prefix(std::min(word.size() + 1, rest.size()));
            if (auto taken = take_word(word); !taken) return std::unexpected(taken.error());
        }
        if (auto taken = take_spec(); !taken) return std::unexpected(taken.error());
        return setting_;
    }

private:
    [[nodiscard]] std::unexpected<gen::Error> refuse(std::string_view word, std::string_view why) const {
        return gen::fail(KVJIT_BAD_ARGUMENT, std::string(called_),
                         text(called_, " has \"", word, "\"; ", why, why.ends_with('?') ? " It" : "; it",
                              " takes DIR or DIR:name=value,... with the names call, every, layer, program, "
                              "max_files, max_bytes and the fields of a spec"));
    }

    gen::Result<void> take_word(std::string_view word) {
        const std::size_t equals = word.find('=');
        if (equals == word.npos) return refuse(word, "it has no =");
        const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
        if (!seen_.insert(name).second) return refuse(word, text(name, " was given before"));
        if (name == "program") return take_program(word, value);
        const auto number = std::ranges::find(kNumbers, name, &Number::name);
        if (number != std::end(kNumbers)) return take_number(*number, word, value);
        if (std::ranges::find(gen::spec_fields(), name, &gen::Field::name) == gen::spec_fields().end()) {
            return refuse(word, text("there is no such name", gen::did_you_mean(name, names_to_choose())));
        }
        spec_words_.append(spec_words_.empty() ? "" : ",").append(word);
        return {};
    }

    gen::Result<void> take_number(const Number& number, std::string_view word, std::string_view value) {
        std::int64_t read = 0;
        const char* end = value.data() + value.size();
        const auto [stopped, error] = std::from_chars(value.data(), end, read);
        if (error != std::errc() || stopped != end || read < number.least) {
            return refuse(word, text("its value is a whole number from ", number.least, " to ", kMost));
        }
        number.set(setting_, read);
        return {};
    }

    gen::Result<void> take_program(std::string_view word, std::string_view value) {
        const auto found = std::ranges::find(gen::programs(), value, &gen::ProgramInfo::label);
        if (found == gen::programs().end() || (found->bit & kNoProgramToChoose) != 0) {
            const std::vector<std::string_view> names = programs_to_choose();
            return refuse(word, text("calls are chosen by ", listed(names), gen::did_you_mean(value, names)));
        }
        setting_.programs = found->bit;
        return {};
    }

    /// The words of which each has one field's value, together a text of a spec.
    gen::Result<void> take_spec() {
        const gen::Result<gen::KernelSpec> read = gen::parse_fields(spec_words_);
        if (!read)
            return gen::fail(KVJIT_BAD_ARGUMENT, std::string(called_), text(called_, ": ", read.error().message));
        setting_.spec = *read;
        const gen::KernelSpec defaults = gen::default_spec();
        for (const gen::Field& field : gen::spec_fields()) {
            // A layout's name sets further fields.
            const bool is_given = seen_.contains(field.name) || field.print(*read) != field.print(defaults);
            if (is_given) setting_.fields.push_back(&field);
        }
        if (gen::is_relayout(*read)) return refuse("op=Relayout", "calls of Relayout aren't recorded");
        return {};
    }

    std::string_view called_;
    RecordSetting setting_;
    std::set<std::string_view> seen_;  // names
    std::string spec_words_;
};

}  // namespace

bool RecordSetting::agrees(const gen::KernelSpec& other) const {
    return std::ranges::all_of(fields,
                               [&](const gen::Field* field) { return field->print(spec) == field->print(other); });
}

gen::Result<RecordSetting> parse_record_setting(std::string_view given, std::string_view called) {
    return Reader(called).read(given);
}

}  // namespace kvjit::rt
