#include "generator/spec_list.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "words.h"

namespace kvjit::gen {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kSeparators = ", \t\r";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // as editors put it in front of UTF-8
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// The product of counts, saturated.
std::int64_t product(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? kMost : result;
}
std::int64_t sum(std::int64_t a, std::int64_t b) {
    return a > kMost - b ? kMost : a + b;
}

// ---- A line's text ----------------------------------------------------------------------------------------

/// One element of a list in braces: a value, or a range of numbers.
struct Item {
    std::string_view text;
    std::int64_t first = 0, last = 0, step = 0;  // step 0: no range

    std::int64_t count() const { return step == 0 ? 1 : (last - first) / step + 1; }
};

/// A field with all values that a line gives it.
struct Word {
    std::string_view name;
    std::vector<Item> items;
};

std::unexpected<Error> refuse(std::string_view word, std::string_view says) {
    return fail(KVJIT_BAD_SPEC, std::string(word.substr(0, word.find('='))), quoted(word) + std::string(says));
}

/// A number in the range of a field, so that differences can't overflow.
bool read_number(std::string_view text, std::int64_t& number) {
    std::int32_t small = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), small);
    number = small;
    return error == std::errc() && end == text.data() + text.size();
}

/// "first..last" or "first..last..step".
bool read_range(std::string_view text, Item& item) {
    if (text.ends_with('.')) return false;  // no step after the dots
    const std::string_view first = take_until(text, ".."), last = take_until(text, "..");
    if (!read_number(first, item.first) || !read_number(last, item.last)) return false;
    if (!read_number(text.empty() ? "1" : text, item.step) || item.step < 1) return false;
    return item.first <= item.last && (item.last - item.first) % item.step == 0;
}

Result<Item> parse_item(std::string_view word, std::string_view text) {
    Item item{trimmed(text)};
    if (item.text.empty()) return refuse(word, " lacks a value beside a comma or brace");
    if (item.text.find_first_of(kBlanks) != item.text.npos) {
        return refuse(word, ": " + quoted(item.text) + " is no value; commas stand between values");
    }
    if (!item.text.contains("..") || read_range(item.text, item)) return item;
    return refuse(word, ": " + quoted(item.text) +
                            " is no range; it takes first..last or first..last..step, whole numbers of which last is "
                            "reached from first in steps of at least 1, as in 64..256..64");
}

/// "field=value" or "field={item,item}".
Result<Word> parse_word(std::string_view word) {
    std::string_view rest = word;
    Word parsed{take_until(rest, "="), {}};
    const bool braces = rest.size() > 1 && rest.starts_with('{') && rest.ends_with('}');
    if (braces) rest = rest.substr(1, rest.size() - 2);
    if (!word.contains('=') || rest.find_first_of("{}") != rest.npos) {
        return refuse(word, " is no field=value and no field={value,value}");
    }
    if (!braces) parsed.items.push_back({rest});
    for (bool more = braces; more;) {
        more = rest.contains(',');
        Result<Item> item = parse_item(word, take_until(rest, ","));
        if (!item) return std::unexpected(item.error());
        parsed.items.push_back(*item);
    }
    return parsed;
}

/// Removes and returns the first word of the line. Separators between braces belong to the word.
std::string_view take_word(std::string_view& line) {
    std::size_t end = 0;
    for (bool inside = false; end < line.size() && (inside || !kSeparators.contains(line[end])); ++end) {
        inside = line[end] == '{' || (inside && line[end] != '}');
    }
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(end);
    return word;
}

Result<std::vector<Word>> parse_line(std::string_view line) {
    std::vector<Word> words;
    while (true) {
        line.remove_prefix(std::min(line.find_first_not_of(kSeparators), line.size()));
        if (line.empty()) return words;
        Result<Word> word = parse_word(take_word(line));
        if (!word) return std::unexpected(word.error());
        words.push_back(*std::move(word));
    }
}

std::int64_t count_combinations(const std::vector<Word>& words) {
    std::int64_t count = 1;
    for (const Word& word : words) {
        std::int64_t values = 0;
        for (const Item& item : word.items) values = sum(values, item.count());
        count = product(count, values);
    }
    return count;
}

// ---- A line's combinations --------------------------------------------------------------------------------

std::unexpected<Error> at_line(std::int64_t number, Error error) {
    error.message = "line " + std::to_string(number) + ": " + error.message;
    return std::unexpected(std::move(error));
}

struct Value {
    std::string pair;                     // "head_dim=64"
    bool is_in_a_spec = false;            // one of the line's specs has it
    std::optional<std::size_t> left_out;  // the first combination with it that is left out
};

struct Column {
    std::string_view field;
    std::vector<Value> values;
    std::size_t at = 0;  // index of the current combination's value

    Value& value() { return values[at]; }
};

Column spell_out(const Word& word) {
    Column column{word.name, {}};
    const auto add = [&](std::string_view text) {
        column.values.push_back({std::string(word.name) + "=" + std::string(text), false, std::nullopt});
    };
    for (const Item& item : word.items) {
        if (item.step == 0) add(item.text);
        for (std::int64_t i = 0; item.step != 0 && i < item.count(); ++i)
            add(std::to_string(item.first + i * item.step));
    }
    return column;
}

class Line {
public:
    Line(std::int64_t number, const std::vector<Word>& words) : number_(number) {
        for (const Word& word : words) columns_.push_back(spell_out(word));
    }

    /// Adds the line's specs to the list, unless their canonical texts are in `texts`.
    Result<void> add_to(SpecList& list, std::set<std::string>& texts) {
        do {
            const Result<KernelSpec> spec = take_combination();
            if (!spec) {
                leave_out(spec.error());
            } else if (texts.insert(print_spec(*spec)).second) {
                list.specs.push_back({number_, *spec});
            }
            ++combinations_;
        } while (next());
        if (auto all = check_values(); !all) return all;
        std::ranges::move(left_out_, std::back_inserter(list.left_out));
        return {};
    }

private:
    std::string combination() {
        std::string text;
        for (Column& column : columns_) text += (text.empty() ? "" : ",") + column.value().pair;
        return text;
    }

    /// Advances to the next combination, the last column fastest. False: there is none.
    bool next() {
        for (std::size_t i = columns_.size(); i-- > 0;) {
            if (++columns_[i].at < columns_[i].values.size()) return true;
            columns_[i].at = 0;
        }
        return false;
    }

    Result<KernelSpec> take_combination() {
        const Result<KernelSpec> given = parse_fields(combination());
        if (!given) return given;
        const KernelSpec spec = without_useless(*given);
        if (auto valid = validate_spec(spec); !valid) return std::unexpected(valid.error());
        for (Column& column : columns_) {
            const Field& field = *std::ranges::find(spec_fields(), column.field, &Field::name);
            if (field.print(spec) == field.print(*given)) column.value().is_in_a_spec = true;
        }
        return spec;
    }

    void leave_out(const Error& reason) {
        for (Column& column : columns_) {
            if (!column.value().left_out) column.value().left_out = left_out_.size();
        }
        left_out_.push_back({number_, combination(), reason});
    }

    /// A value that none of the line's specs has is a mistake.
    Result<void> check_values() {
        std::ranges::stable_partition(columns_, [&](const Column& column) { return is_fault_of_all(column); });
        for (Column& column : columns_) {
            const auto lost = std::ranges::find(column.values, false, &Value::is_in_a_spec);
            if (lost == column.values.end()) continue;
            column.at = static_cast<std::size_t>(lost - column.values.begin());
            return refuse_value(*lost);
        }
        return {};
    }

    /// Whether each combination is refused for this field, so that the other fields' values are not the mistake.
    bool is_fault_of_all(const Column& column) const {
        const auto names_it = [&](const SpecList::LeftOut& left) { return left.reason.argument == column.field; };
        return std::ssize(left_out_) == combinations_ && std::ranges::all_of(left_out_, names_it);
    }

    /// The current combination has the value.
    std::unexpected<Error> refuse_value(const Value& value) {
        if (combinations_ == 1) return at_line(number_, parse_spec(combination()).error());
        // Where no combination with it is left out, its field counts in none of them, as the error of each says.
        const std::string text = value.left_out ? left_out_[*value.left_out].combination : combination();
        Error error = value.left_out ? left_out_[*value.left_out].reason : parse_spec(text).error();
        error.message = "no spec has " + value.pair + "; of " + quoted(text) + ": " + error.message;
        return at_line(number_, std::move(error));
    }

    std::int64_t number_;
    std::int64_t combinations_ = 0;
    std::vector<Column> columns_;
    std::vector<SpecList::LeftOut> left_out_;
};

std::unexpected<Error> too_many(std::int64_t line, std::int64_t count, std::int64_t most) {
    return at_line(line,
                   Error{KVJIT_BAD_SPEC,
                         "the list makes " + std::to_string(count) + " combinations up to here; max_combinations is " +
                             std::to_string(most) + ": raise it if so many are meant",
                         "max_combinations", count, most, -1});
}

}  // namespace

Result<SpecList> parse_spec_list(std::string_view text, std::int64_t max_combinations) {
    SpecList list;
    std::set<std::string> texts;
    std::set<std::string_view> lines;  // traces of many processes repeat the same ones
    std::int64_t combinations = 0;
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    for (std::int64_t number = 1; !text.empty(); ++number) {
        std::string_view line = take_until(text, "\n");
        const std::string_view specs = take_until(line, "#");
        if (!lines.insert(specs).second) continue;
        const Result<std::vector<Word>> words = parse_line(specs);
        if (!words) return at_line(number, words.error());
        if (words->empty()) continue;
        combinations = sum(combinations, count_combinations(*words));
        if (combinations > max_combinations) return too_many(number, combinations, max_combinations);
        if (auto added = Line(number, *words).add_to(list, texts); !added) return std::unexpected(added.error());
    }
    return list;
}

}  // namespace kvjit::gen
