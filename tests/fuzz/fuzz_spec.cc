// Any text as a spec, and as a list of specs: it is refused with an error that says what and where, or each spec that
// comes out prints as a text that parses to the same spec.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fuzz_target.h"
#include "kvjit/kvjit.h"

namespace {

using kvjit::test::require;

constexpr std::int64_t kMaxCombinations = 500;

void append(void* to, const char* bytes, size_t size) {
    static_cast<std::string*>(to)->append(bytes, size);
}

std::string printed(const kvjit_spec& spec) {
    std::string text;
    require(kvjit_spec_print(&spec, append, &text, nullptr) == KVJIT_OK, "a spec that parsed prints");
    return text;
}

void check_round_trip(const kvjit_spec& spec) {
    const std::string text = printed(spec);
    kvjit_spec again;
    require(kvjit_spec_parse(text.c_str(), &again, nullptr) == KVJIT_OK, "what was printed parses: " + text);
    require(std::memcmp(&again, &spec, sizeof spec) == 0, "it parses to the same spec: " + text);
}

void check_error(const kvjit_error& error, kvjit_status status) {
    require(error.status == status && status == KVJIT_BAD_SPEC, "a text is refused as a bad spec");
    require(std::strlen(error.message) > std::strlen(error.argument), "the message says more than the argument's name");
}

void read_spec(const std::string& text) {
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    const kvjit_spec before = spec;
    kvjit_error error;
    kvjit_error_init(&error);
    if (const kvjit_status status = kvjit_spec_parse(text.c_str(), &spec, &error); status != KVJIT_OK) {
        check_error(error, status);
        const bool nameless = std::string_view(error.message).starts_with("unknown field \"\";");
        require(nameless == (error.argument[0] == '\0'), std::string("the error names the field: ") + error.message);
        require(std::memcmp(&spec, &before, sizeof spec) == 0, "a text that is refused changes nothing");
        return;
    }
    check_round_trip(spec);
}

struct List {
    std::int64_t lines;
    std::vector<std::string> specs;
    std::int64_t left_out = 0;

    void check_line(std::int64_t line) const { require(line >= 1 && line <= lines, "a line is one of the text's"); }
};

void take(void* to, std::int64_t line, const kvjit_spec* spec) {
    List& list = *static_cast<List*>(to);
    list.check_line(line);
    check_round_trip(*spec);
    list.specs.push_back(printed(*spec));
}

void leave_out(void* to, std::int64_t line, const char* combination, const char* reason) {
    List& list = *static_cast<List*>(to);
    list.check_line(line);
    require(*combination != '\0' && *reason != '\0', "what is left out is left out with a reason");
    ++list.left_out;
}

void read_list(const std::string& text) {
    List list{std::ranges::count(text, '\n') + 1, {}};
    kvjit_error error;
    kvjit_error_init(&error);
    const kvjit_status status = kvjit_spec_list_parse(text.c_str(), kMaxCombinations, take, leave_out, &list, &error);
    if (status != KVJIT_OK) {
        check_error(error, status);
        require(list.specs.empty() && list.left_out == 0, "a list that is refused hands out nothing");
        require(std::string_view(error.message).starts_with("line "), std::string("an error's line: ") + error.message);
        return list.check_line(std::strtoll(error.message + std::strlen("line "), nullptr, 10));
    }
    require(std::ssize(list.specs) + list.left_out <= kMaxCombinations, "a list makes as much as it may");
    std::ranges::sort(list.specs);
    require(std::ranges::adjacent_find(list.specs) == list.specs.end(), "a list has each spec once");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string bytes = kvjit::test::as_text(data, size);
    const std::string text = bytes.substr(0, bytes.find('\0'));
    read_spec(text);
    read_list(text);
    return 0;
}

std::string kvjit::test::good_input(std::uint64_t number) {
    const std::string lines[] = {
        "op=MultiHeadCacheAttention,head_dim=128,group=4,cache_mode=page_table,layout=L2HTD,quant_bit=8",
        "op={KeyValueCache,MultiHeadCacheAttention} head_dim={64,128} quant_bit={0,8} quant_group={8,32}",
        "head_dim={64..256..64} t1={f16,f32} # comment", "layout=vllm:LBNHC", "group={1,4..8,16..32..8}"};
    std::string text = lines[number % std::size(lines)];
    if (number / 8 % 2 == 1) text += "\n" + lines[number / 16 % std::size(lines)];
    return text;
}
