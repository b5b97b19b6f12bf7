// Lists of specs: what lines with braces make, what they leave out, what is refused.
#include "generator/spec_list.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace kvjit::gen;

namespace {

constexpr std::int64_t kMany = 10000;

SpecList listed(const std::string& text, std::int64_t most = kMany) {
    Result<SpecList> list = parse_spec_list(text, most);
    REQUIRE_MESSAGE(list.has_value(), text, ": ", list.error().message);
    return *std::move(list);
}

/// "line canonical text", as the list has them.
std::vector<std::string> texts_of(const SpecList& list) {
    std::vector<std::string> texts;
    for (const SpecList::Item& item : list.specs)
        texts.push_back(std::to_string(item.line) + " " + print_spec(item.spec));
    return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a line is a spec; comments, empty lines and line ends of any kind are not") {
    CHECK(texts_of(listed("")).empty());
    CHECK(texts_of(listed("\n  \t\r\n# head_dim=64\n , \n")).empty());
    CHECK(texts_of(listed("\xEF\xBB\xBFhead_dim=64")) == Texts{"1 op=MultiHeadCacheAttention,head_dim=64"});
    CHECK(texts_of(listed("\xEF\xBB\xBF")).empty());
    CHECK(parse_spec_list("head_dim=64\n\xEF\xBB\xBFhead_dim=32", 10).error().message.starts_with("line 2: "));
    CHECK(texts_of(listed("# what we serve\nhead_dim=64, group=4 # decode\r\n\nop=Merge\thead_dim=64")) ==
          Texts{"2 op=MultiHeadCacheAttention,head_dim=64,group=4", "4 op=Merge,head_dim=64"});
}

TEST_CASE("braces hold values and ranges; a line makes each combination, the last field's values first") {
    CHECK(texts_of(listed("head_dim={64,128} quant_bit={0, 8}")) ==
          Texts{"1 op=MultiHeadCacheAttention,head_dim=64", "1 op=MultiHeadCacheAttention,head_dim=64,quant_bit=8",
                "1 op=MultiHeadCacheAttention", "1 op=MultiHeadCacheAttention,quant_bit=8"});
    CHECK(texts_of(listed("op=Merge,head_dim={ 64..192..64 ,256}")) ==
          Texts{"1 op=Merge,head_dim=64", "1 op=Merge", "1 op=Merge,head_dim=192", "1 op=Merge,head_dim=256"});
    CHECK(texts_of(listed("group={1..3}")) == Texts{"1 op=MultiHeadCacheAttention",
                                                    "1 op=MultiHeadCacheAttention,group=2",
                                                    "1 op=MultiHeadCacheAttention,group=3"});
    CHECK(texts_of(listed("group={7..7}")) == Texts{"1 op=MultiHeadCacheAttention,group=7"});
    CHECK(texts_of(listed("layout={3,r1:3}")) ==
          Texts{"1 op=MultiHeadCacheAttention,layout=L2HTD", "1 op=MultiHeadCacheAttention,layout=2LHTD"});
}

TEST_CASE("a spec stands in the list once, however it is written") {
    CHECK(texts_of(listed("head_dim=128\nhead_dim={64,128,64}\ngroup=1\nlayout={0,TL2HD}")) ==
          Texts{"1 op=MultiHeadCacheAttention", "2 op=MultiHeadCacheAttention,head_dim=64"});
}

TEST_CASE("fields that don't count for a combination have their defaults there") {
    CHECK(texts_of(listed("quant_bit={0,8} quant_group={32,64}")) ==
          Texts{"1 op=MultiHeadCacheAttention", "1 op=MultiHeadCacheAttention,quant_bit=8,quant_group=32",
                "1 op=MultiHeadCacheAttention,quant_bit=8,quant_group=64"});
    CHECK(texts_of(listed("op={KeyValueCache,MultiHeadAttention,Merge} group=4 quant_bit=8 quant_group=16")) ==
          Texts{"1 op=KeyValueCache,quant_bit=8,quant_group=16", "1 op=MultiHeadAttention,group=4", "1 op=Merge"});
    CHECK(listed("quant_bit={0,8} quant_group={32,64}").left_out.empty());
}

TEST_CASE("illegal combinations are left out and named; every value must be good for something") {
    const SpecList list = listed("\nhead_dim={64,96} quant_bit=8 quant_group={32,64}");
    CHECK(texts_of(list) == Texts{"2 op=MultiHeadCacheAttention,head_dim=64,quant_bit=8,quant_group=32",
                                  "2 op=MultiHeadCacheAttention,head_dim=64,quant_bit=8,quant_group=64",
                                  "2 op=MultiHeadCacheAttention,head_dim=96,quant_bit=8,quant_group=32"});
    REQUIRE(list.left_out.size() == 1);
    CHECK(list.left_out[0].line == 2);
    CHECK(list.left_out[0].combination == "head_dim=96,quant_bit=8,quant_group=64");
    CHECK(list.left_out[0].reason.argument == "quant_group");
    CHECK(list.left_out[0].reason.message.starts_with("quant_group is 64; it takes head_dim"));
}

TEST_CASE("what is refused, and what the error says") {
    struct Case {
        const char* text;
        const char* argument;
        const char* begins;
        const char* says;
    };
    const Case cases[] = {
        {"head_dim=100", "head_dim", "line 1: head_dim is \"100\"; ", "a multiple of 8"},
        {"\n#\nhead_dim={64,100,128}", "head_dim",
         "line 3: no spec has head_dim=100; of \"head_dim=100\": ", "a multiple"},
        {"group=2 head_dim={64,100}", "head_dim",
         "line 1: no spec has head_dim=100; of \"group=2,head_dim=100\": ", ""},
        {"quant_bit=0 quant_group={8,32}", "quant_group", "line 1: no spec has quant_group=32; of ",
         "quant_bit=0 has no use"},
        {"op={KeyValueCache,MultiHeadCacheAttention} layout=trtlm:pool", "layout",
         "line 1: no spec has layout=trtlm:pool; of \"op=KeyValueCache,layout=trtlm:pool\": layout is ",
         "trtllm:pool?"},
        {"op={Merge,KeyValueCache} group=4", "group", "line 1: no spec has group=4; of ", "has no use"},
        {"head_dim=96 quant_bit={0,8} quant_group=64", "quant_group",
         "line 1: no spec has quant_bit=8; of \"head_dim=96,quant_bit=8,quant_group=64\": ", "it takes head_dim"},
        {"quant_bit=8 quant_group=12", "quant_group", "line 1: quant_group is 12; ", "power of two"},
        {"colour={red,blue}", "colour", "line 1: ", "unknown field \"colour\""},
        {"head_dim={64,128} head_dim=64", "head_dim", "line 1: ", "once"},
        {"head_dim", "head_dim", "line 1: ", "no field=value"},
        {"{64,128}", "{64,128}", "line 1: ", "no field=value"},
        {"head_dim={64,128", "head_dim", "line 1: \"head_dim={64,128\" ", "no field=value"},
        {"head_dim={64,128 quant_bit={0,8}", "head_dim", "line 1: ", "no field=value"},
        {"head_dim=64}", "head_dim", "line 1: ", "no field=value"},
        {"head_dim={", "head_dim", "line 1: ", "no field=value"},
        {"head_dim={{64}}", "head_dim", "line 1: ", "no field=value"},
        {"head_dim=6{4,8}", "head_dim", "line 1: ", "no field=value"},
        {"head_dim={}", "head_dim", "line 1: ", "lacks a value"},
        {"head_dim={64,}", "head_dim", "line 1: ", "lacks a value"},
        {"head_dim={64 128}", "head_dim", "line 1: ", "\"64 128\" is no value"},
        {"head_dim={64 group=4}", "head_dim", "line 1: ", "is no value"},
        {"head_dim={64..}", "head_dim", "line 1: ", "no range"},
        {"group={1..5..}", "group", "line 1: ", "no range"},
        {"group={..5}", "group", "line 1: ", "no range"},
        {"head_dim={128..64}", "head_dim", "line 1: ", "no range"},
        {"head_dim={64..128..0}", "head_dim", "line 1: ", "no range"},
        {"head_dim={64..128..-64}", "head_dim", "line 1: ", "no range"},
        {"head_dim={64..200..64}", "head_dim", "line 1: ", "\"64..200..64\" is no range"},
        {"head_dim={64..128..64..64}", "head_dim", "line 1: ", "no range"},
        {"head_dim={64..99999999999}", "head_dim", "line 1: ", "no range"},
        {"layout={L2HTD..TL2HD}", "layout", "line 1: ", "no range"},
        {"head_dim=64\nhead_dim=64..128", "head_dim", "line 2: head_dim is \"64..128\"", ""},
    };
    for (const Case& misuse : cases) {
        CAPTURE(misuse.text);
        const Result<SpecList> list = parse_spec_list(misuse.text, kMany);
        REQUIRE(!list.has_value());
        CHECK(list.error().status == KVJIT_BAD_SPEC);
        CHECK(list.error().argument == misuse.argument);
        CHECK_MESSAGE(list.error().message.starts_with(misuse.begins), list.error().message);
        CHECK_MESSAGE(list.error().message.contains(misuse.says), list.error().message);
    }
}

TEST_CASE("more combinations than are allowed are refused before any is made") {
    CHECK(listed("page_size={1..10000} cache_mode=page_table").specs.size() == 10000);
    CHECK(listed("group={1,1,1}", 3).specs.size() == 1);
    for (const auto& [text, count] : std::vector<std::pair<std::string, std::int64_t>>{
             {"page_size={1..10001} cache_mode=page_table", 10001},
             {"head_dim=64\npage_size={1..10000} cache_mode=page_table", 10001},
             {"group={1..256} head_dim={8..512..8}", 256 * 64},
             {"page_size={-2147483648..2147483647}", std::int64_t{1} << 32},
             {"t1={0..2147483647} t2={1..2147483647} t3={1..2147483647}", INT64_MAX}}) {
        CAPTURE(text);
        const Result<SpecList> list = parse_spec_list(text, kMany);
        REQUIRE(!list.has_value());
        CHECK(list.error().argument == "max_combinations");
        CHECK(list.error().value == count);
        CHECK(list.error().limit == kMany);
        CHECK_MESSAGE(list.error().message.contains("raise it"), list.error().message);
    }
    CHECK(parse_spec_list("group={1,1,1}", 2).error().value == 3);
}

namespace {

/// A field and what a line may give it, in canonical words.
struct Given {
    std::string field;
    Texts values;
};

const std::vector<Given> kFree = {{"head_dim", {"8", "40", "64", "96", "512"}},
                                  {"group", {"1", "2", "71", "256"}},
                                  {"index_type", {"i32", "i64"}},
                                  {"is_causal", {"0", "1"}},
                                  {"is_alibi", {"0", "1"}},
                                  {"attn_mask", {"0", "2", "3"}},
                                  {"layout", {"L2HTD", "TL2HD", "T2HD"}}};
const std::vector<Given> kTied = {{"op", {"KeyValueCache", "MultiHeadAttention", "MultiHeadCacheAttention", "Merge"}},
                                  {"head_dim", {"40", "64", "96"}},
                                  {"t1", {"f16", "f32", "i8"}},
                                  {"t2", {"auto", "f16", "i8"}},
                                  {"t3", {"auto", "f32"}},
                                  {"quant_bit", {"0", "4", "8"}},
                                  {"quant_group", {"8", "16", "64"}},
                                  {"cache_mode", {"offset", "page_table", "block_table"}},
                                  {"page_size", {"16", "128"}},
                                  {"attn_mask", {"0", "2"}},
                                  {"layout", {"L2HTD", "TL2HD", "N2LTHD"}}};

/// Some of the fields, each with some of its values, at least one.
std::vector<Given> random_line(const std::vector<Given>& fields, int percent, std::mt19937& random) {
    std::vector<Given> line;
    for (Given given : fields) {
        if (static_cast<int>(random() % 100) >= percent) continue;
        std::ranges::shuffle(given.values, random);
        given.values.resize(1 + random() % given.values.size());
        line.push_back(given);
    }
    std::ranges::shuffle(line, random);
    return line;
}

std::string text_of(const std::vector<Given>& line) {
    std::string text;
    for (const Given& given : line) {
        text += (text.empty() ? "" : " ") + given.field + "=";
        std::string values;
        for (const std::string& value : given.values) values += (values.empty() ? "" : ",") + value;
        text += given.values.size() > 1 ? "{" + values + "}" : values;
    }
    return text;
}

using Combination = std::vector<std::pair<std::string, std::string>>;

std::vector<Combination> combinations_of(const std::vector<Given>& line) {
    std::vector<Combination> all = {{}};
    for (const Given& given : line) {
        std::vector<Combination> longer;
        for (const Combination& combination : all) {
            for (const std::string& value : given.values) {
                longer.push_back(combination);
                longer.back().emplace_back(given.field, value);
            }
        }
        all = std::move(longer);
    }
    return all;
}

std::string joined(const Combination& combination) {
    std::string text;
    for (const auto& [field, value] : combination) text += (text.empty() ? "" : ",") + field + "=" + value;
    return text;
}

/// The combination's spec: what parse_spec says has no use is taken away until it says nothing of the kind.
Result<KernelSpec> spec_of(Combination combination) {
    while (true) {
        Result<KernelSpec> spec = parse_spec(joined(combination));
        if (spec || !spec.error().message.contains("has no use for it")) return spec;
        const auto useless = std::ranges::find(combination, spec.error().argument, &Combination::value_type::first);
        REQUIRE(useless != combination.end());
        combination.erase(useless);
    }
}

/// What a list of one line should be; no value of it: refused.
struct Expected {
    Texts specs, left_out;
    bool refused = false;
};

Expected expected_of(const std::vector<Given>& line) {
    Expected expected;
    std::map<std::pair<std::string, std::string>, bool> used;
    for (const Combination& combination : combinations_of(line)) {
        const Result<KernelSpec> spec = spec_of(combination);
        if (!spec) expected.left_out.push_back(joined(combination));
        for (const auto& pair : combination) {
            bool& is_used = used[pair];
            const auto field = std::ranges::find(spec_fields(), pair.first, &Field::name);
            is_used = is_used || (spec && field->print(*spec) == pair.second);
        }
        if (!spec) continue;
        const std::string text = "1 " + print_spec(*spec);
        if (std::ranges::find(expected.specs, text) == expected.specs.end()) expected.specs.push_back(text);
    }
    expected.refused = std::ranges::any_of(used, [](const auto& entry) { return !entry.second; });
    return expected;
}

}  // namespace

TEST_CASE("fields that don't depend on each other make the product of their values") {
    const unsigned seed = 20261123;
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 300; ++round) {
        const std::vector<Given> line = random_line(kFree, 60, random);
        if (line.empty()) continue;
        std::size_t product = 1;
        for (const Given& given : line) product *= given.values.size();
        CAPTURE(text_of(line));
        const SpecList list = listed(text_of(line));
        CHECK(list.specs.size() == product);
        CHECK(list.left_out.empty());
        CHECK(!parse_spec_list(text_of(line), static_cast<std::int64_t>(product) - 1).has_value());
    }
}

TEST_CASE("random lines make what each of their combinations makes") {
    const unsigned seed = 20261124;
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    int refused = 0, with_left_out = 0;
    for (int round = 0; round < 5000; ++round) {
        const std::vector<Given> line = random_line(kTied, 35, random);
        if (line.empty()) continue;
        CAPTURE(text_of(line));
        const Expected expected = expected_of(line);
        const Result<SpecList> list = parse_spec_list(text_of(line), kMany);
        REQUIRE(list.has_value() == !expected.refused);
        refused += expected.refused;
        if (!list) continue;
        CHECK(texts_of(*list) == expected.specs);
        Texts left_out;
        for (const SpecList::LeftOut& out : list->left_out) left_out.push_back(out.combination);
        CHECK(left_out == expected.left_out);
        with_left_out += !left_out.empty();
    }
    CHECK(refused > 300);
    CHECK(with_left_out > 50);
}

TEST_CASE("a line without braces is taken exactly where parse_spec takes it, for the same reason") {
    const unsigned seed = 20261125;
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    int taken = 0;
    for (int round = 0; round < 3000; ++round) {
        std::vector<Given> line = random_line(kTied, 35, random);
        for (Given& given : line) given.values.resize(1);
        if (line.empty()) continue;
        CAPTURE(text_of(line));
        const Result<KernelSpec> spec = parse_spec(text_of(line));
        const Result<SpecList> list = parse_spec_list(text_of(line), 1);
        REQUIRE(spec.has_value() == list.has_value());
        taken += spec.has_value();
        if (spec) CHECK(texts_of(*list) == Texts{"1 " + print_spec(*spec)});
        if (!spec) CHECK(list.error().argument == spec.error().argument);
    }
    CHECK(taken > 300);
}

TEST_CASE("a list's canonical texts, a line each, are the list again") {
    const SpecList list = listed(
        "op={KeyValueCache,MultiHeadCacheAttention} head_dim={64..256..64} quant_bit={0,8,4} quant_group={8,64} "
        "cache_mode={offset,page_table} page_size={16,128} layout={0..3}"
        "\nop=Merge head_dim={8..512..8}");
    CHECK(list.specs.size() > 300);
    std::string text;
    for (const SpecList::Item& item : list.specs)
        text += print_spec(item.spec) + "  # target=x86-64-v3 program=store\n";
    const SpecList again = listed(text);
    REQUIRE(again.specs.size() == list.specs.size());
    for (std::size_t i = 0; i < list.specs.size(); ++i) {
        CHECK(again.specs[i].line == static_cast<std::int64_t>(i) + 1);
        CHECK(print_spec(again.specs[i].spec) == print_spec(list.specs[i].spec));
    }
}
