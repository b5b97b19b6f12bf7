// Identities as texts: written and read by the same rules, and nothing else is read.
#include "generator/identity.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/abi.h"
#include "lowered.h"

using namespace kvjit::gen;

namespace {

const std::string kText =
    "attend_decode;variant=simd;revision=3;kHeadDim=128;T1=f16_t;kCausal=true;abi=2;"
    "x86_64-unknown-linux-gnu:x86-64-v3+avxvnni";
const std::string kDigest(64, 'a');

/// What kText says.
Identity decode() {
    return {"attend_decode",
            "simd",
            3,
            {{"kHeadDim", "128"}, {"T1", "f16_t"}, {"kCausal", "true"}},
            2,
            "x86_64-unknown-linux-gnu:x86-64-v3+avxvnni"};
}

/// Every level, alone and with each feature that it may have beside it; every architecture; all that emulated, too.
std::vector<Target> all_targets() {
    std::vector<Target> targets;
    for (const std::string_view level : x86_levels()) {
        targets.push_back(*named_target(level));
        for (const X86Feature& feature : x86_features()) {
            const auto target = named_target(std::string(level) + "+" + std::string(feature.name));
            if (target) targets.push_back(*target);
        }
    }
    for (std::size_t i = targets.size(); i > 0; --i) targets.push_back(emulated_target(targets[i - 1]));
    for (const KnownArchitecture& known : known_architectures()) {
        for (const char* letter : {"", "a", "f"}) {
            const auto target = named_target("sm_" + std::to_string(known.number) + letter);
            if (target) targets.push_back(*target);
        }
    }
    return targets;
}

const std::vector<std::string> kSpecs = {
    "head_dim=64,group=4",
    "head_dim=128,group=7,t1=f32,is_causal=0,attn_mask=3",
    "head_dim=256,t2=f32,cache_mode=page_table,page_size=64,layout=L2HTD,is_alibi=1",
    "head_dim=96,group=8,quant_bit=8,quant_group=16,t3=f32,cache_mode=block_table,layout=N2LTHD,index_type=i32",
    "op=KeyValueCache,quant_bit=4,cache_mode=token_table",
    "op=MultiHeadAttention,head_dim=72,group=256",
    "op=Merge,head_dim=8,t1=f32",
    "op=Relayout,head_dim=64,quant_bit=8,to_quant_bit=4,to_quant_group=32,to_t3=f32",
};

std::string refusal(std::string_view text) {
    const Result<Identity> parsed = parse_identity(text);
    REQUIRE_MESSAGE(!parsed.has_value(), text);
    CHECK(parsed.error().status == KVJIT_BAD_ARGUMENT);
    return parsed.error().message;
}

/// kText with `from` replaced.
std::string with(std::string_view from, std::string_view to) {
    std::string text = kText;
    return text.replace(text.find(from), from.size(), to);
}

Result<std::vector<Described>> stage(const std::string& text) {
    return parse_stage(text, "given");
}

}  // namespace

TEST_CASE("an identity is written as docs and stores have it, and read again") {
    CHECK(print_identity(decode()) == kText);
    CHECK(*parse_identity(kText) == decode());
}

TEST_CASE("what is read of a program's identity is what it was made of, for all kinds of specs and targets") {
    const std::vector<Target> targets = all_targets();
    CHECK(targets.size() > 200);
    for (const Target& target : targets) {
        REQUIRE_MESSAGE(parse_target(target.text()).has_value(), target.text());
        CHECK(*parse_target(target.text()) == target);
        for (const std::string& spec : kSpecs) {
            for (const Program& program : lowered(spec, target)) {
                const std::string text = identity_text(program, target);
                const Result<Identity> read = parse_identity(text);
                REQUIRE_MESSAGE(read.has_value(), read.error().message);
                CHECK(print_identity(*read) == text);
                CHECK(read->program == program.info->name);
                CHECK(read->variant == program.variant->name);
                CHECK(read->revision == program.variant->revision);
                CHECK(read->abi == kvjit::abi::kKernelAbi);
                CHECK(read->target == target.text());
                REQUIRE(read->constants.size() == program.constants.size());
                for (std::size_t i = 0; i < program.constants.size(); ++i) {
                    CHECK(read->constants[i].name == program.constants[i].name);
                    CHECK(read->constants[i].value == program.constants[i].value);
                }
            }
        }
    }
}

TEST_CASE("bad identities are refused with the part that is bad") {
    CHECK(refusal("").starts_with("\"\" is no identity"));
    CHECK(refusal("merge;variant=simd;revision=1;abi=1").contains("is no identity"));
    CHECK(refusal(with("attend_decode", "")).starts_with("\"\" stands where a program's name does"));
    CHECK(refusal(with("attend_decode", "a b")).starts_with("\"a b\" stands"));
    CHECK(refusal(with("variant=simd", "version=simd")).starts_with("\"version=simd\" stands where variant=NAME"));
    CHECK(refusal(with("simd", "")).starts_with("\"variant=\" stands"));
    for (const char* number : {"0", "-1", "01", "+1", "1x", "", " 1", "99999999999"}) {
        const std::string revision = std::string("revision=") + number, abi = std::string("abi=") + number;
        CHECK(refusal(with("revision=3", revision)).starts_with("\"" + revision + "\" stands where revision=N"));
        CHECK(refusal(with("abi=2", abi)).starts_with("\"" + abi + "\" stands where abi=N"));
    }
    CHECK(refusal(with("kHeadDim=128", "kHeadDim")).starts_with("\"kHeadDim\" stands where a constant"));
    CHECK(refusal(with("kHeadDim=128", "=128")).starts_with("\"=128\" stands where a constant"));
    CHECK(refusal(with("kHeadDim=128", "")).starts_with("\"\" stands where a constant"));
    CHECK(refusal(with("kHeadDim=128", "k=1=2")).starts_with("\"k=1=2\" stands where a constant"));
    CHECK(refusal(with("T1=f16_t", "kHeadDim=64")) == "the constant kHeadDim stands there twice");
    for (const char* target : {"pdp-11", "x86-64-v3", "x86_64-unknown-linux-gnu:x86-64-v9", "nvptx64-nvidia-cuda:sm_",
                               "x86_64-unknown-linux-gnu:x86-64-v3+avx10", "cuda-emulated:nvptx64-nvidia-cuda:sm_80",
                               "x86_64-unknown-linux-gnu:x86-64+avx2", "x86_64-unknown-linux-gnux86-64", ""}) {
        CHECK(refusal(with(decode().target, target)).starts_with("\"" + std::string(target) + "\" is no target"));
    }
}

TEST_CASE("damaged identities are refused, or say something else") {
    for (std::size_t i = 0; i < kText.size(); ++i) {
        for (const std::string& damaged : {kText.substr(0, i), kText.substr(0, i) + kText.substr(i + 1),
                                           kText.substr(0, i) + ";" + kText.substr(i)}) {
            if (const auto read = parse_identity(damaged)) CHECK(print_identity(*read) == damaged);
        }
    }
}

TEST_CASE("a provenance has its source's digest, and what is none has no digest") {
    const std::string text = print_provenance(kDigest, "maker;with=parts");
    CHECK(text == "source=" + kDigest + ";maker;with=parts");
    CHECK(source_digest(text) == kDigest);
    CHECK(source_digest("source=12") == "12");
    CHECK(source_digest("provenance").empty());
    CHECK(source_digest("").empty());
}

TEST_CASE("a stage's text has identity and provenance, of any compiler, and both are read again") {
    constexpr const char* kFlags[] = {"-x", "c++", "-O2"};
    const std::string maker = print_maker("libone build=12\nlib two size=3\n", kFlags, "function(sroa),inline");
    const std::string text = print_stage(kText, print_provenance(kDigest, maker));
    CHECK(text == "identity: " + kText + "\nprovenance: source=" + kDigest +
                      ";libone build=12\nlib two size=3\nflags -x c++ -O2 passes function(sroa),inline\n");
    const auto read = stage(text);
    REQUIRE(read.has_value());
    REQUIRE(read->size() == 1);
    CHECK(read->front().identity == decode());
    const Provenance& provenance = *read->front().provenance;
    CHECK(provenance.source == kDigest);
    CHECK(provenance.libraries == std::vector<NamedValue>{{"libone", "build=12"}, {"lib", "two size=3"}});
    CHECK(provenance.flags == std::vector<std::string>{"-x", "c++", "-O2"});
    CHECK(provenance.passes == "function(sroa),inline");
    const auto bare = stage(print_stage(kText, print_provenance(kDigest, print_maker("", {}))));
    REQUIRE(bare.has_value());
    CHECK(bare->front().provenance->libraries.empty());
    CHECK(bare->front().provenance->flags.empty());
    CHECK(bare->front().provenance->passes.empty());
}

TEST_CASE("a text may have several programs, with a provenance or without, and empty lines between them") {
    const std::string part = "\nprovenance: source=" + kDigest + ";libone build=1\nflags -O2\n";
    const auto read = stage("\n" + kText + "\n\nidentity: " + with("attend_decode", "store") + part +
                            "\nidentity: " + with("attend_decode", "load") + part + with("attend_decode", "merge"));
    REQUIRE_MESSAGE(read.has_value(), read.error().message);
    REQUIRE(read->size() == 4);
    const char* const names[] = {"attend_decode", "store", "load", "merge"};
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK((*read)[i].identity.program == names[i]);
        CHECK((*read)[i].provenance.has_value() == (i == 1 || i == 2));
    }
}

TEST_CASE("a bad text is refused with its line") {
    struct Case {
        std::string text;
        int line;
        std::string what;
    };
    const std::string identity = "identity: " + kText + "\n", source = "provenance: source=" + kDigest + ";";
    const std::string flags = "flags -O2\n", whole = identity + source + "libone build=1\n" + flags;
    const Case cases[] = {
        {"", 0, "there is no identity"},
        {"\n\n", 0, "there is no identity"},
        {"hello", 1, "\"hello\" is no identity"},
        {" " + kText, 1, "\" attend_decode\" stands where"},
        {kText + "\r\n", 1, "is no target"},
        {identity + kText, 2, "attend_decode stands there twice"},
        {source + flags + identity, 1, "a provenance stands without its identity"},
        {whole + source + flags, 4, "a provenance stands without its identity"},
        {identity + "provenance: source=" + kDigest.substr(1) + ";" + flags, 2, "is no digest"},
        {identity + "provenance: source=" + kDigest.substr(1) + "g;" + flags, 2, "is no digest"},
        {identity + "provenance: source=" + kDigest, 2, "\"\" stands where a compiler's library"},
        {identity + source + "libone build=1\n", 0, "the provenance before this lacks its flags"},
        {identity + source + "libone build=1\n\n" + flags, 3, "\"\" stands where a compiler's library"},
        {identity + source + "libone build=1\n" + whole, 3, "the provenance before this lacks its flags"},
        {identity + source + "libone build=1\n" + source, 3, "the provenance before this lacks its flags"},
        {identity + source + "libone\n" + flags, 2, "\"libone\" stands where a compiler's library"},
    };
    for (const Case& test : cases) {
        CAPTURE(test.text);
        const auto read = stage(test.text);
        REQUIRE(!read.has_value());
        const Error& error = read.error();
        CHECK(error.status == KVJIT_BAD_ARGUMENT);
        CHECK(error.argument == "given");
        CHECK(error.value == test.line);
        const std::string where = test.line != 0 ? "given, line " + std::to_string(test.line) + ": " : "given: ";
        CHECK_MESSAGE(error.message.starts_with(where), error.message);
        CHECK_MESSAGE(error.message.contains(test.what), error.message);
    }
}
