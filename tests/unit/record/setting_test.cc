// What KVJIT_RECORD takes.
#include "record/setting.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "record/case_fields.h"

using namespace kvjit;

namespace {

std::string error_of(const char* text) {
    const auto setting = rt::parse_record_setting(text);
    return setting ? "" : setting.error().message;
}

bool agrees(const char* setting, const char* spec) {
    return rt::parse_record_setting(setting)->agrees(*gen::parse_spec(spec));
}

#define CHECK_SAYS(error, part) CHECK_MESSAGE(std::string(error).find(part) != std::string::npos, error)

}  // namespace

TEST_CASE("a folder alone, and every name") {
    const auto plain = rt::parse_record_setting("/tmp/calls");
    REQUIRE(plain);
    CHECK(plain->folder == "/tmp/calls");
    CHECK(plain->every == 1);
    CHECK(plain->max_files == 100);
    const auto all = rt::parse_record_setting(
        "calls:call=7,every=3,layer=2,program=decode,max_files=5,max_bytes=1000,op=KeyValueCache,head_dim=64");
    REQUIRE_MESSAGE(all, all.error().message);
    CHECK(all->folder == "calls");
    CHECK(all->call == 7);
    CHECK(all->every == 3);
    CHECK(all->layer == 2);
    CHECK(all->programs == KVJIT_PROGRAM_DECODE);
    CHECK(all->max_files == 5);
    CHECK(all->max_bytes == 1000);
}

TEST_CASE("a setting that isn't understood names the word and what it takes") {
    CHECK_SAYS(error_of(":call=1"), "the folder is missing");
    CHECK_SAYS(error_of("d:decode"), "\"decode\"; it has no =");
    CHECK_SAYS(error_of("d:calls=1"), "record has \"calls=1\"; there is no such name; did you mean call? It takes DIR");
    CHECK_SAYS(error_of("d:hed_dim=64"), "did you mean head_dim?");
    CHECK_SAYS(error_of("d:wings=1"), "\"wings=1\"; there is no such name; it takes DIR or DIR:name=value,...");
    CHECK_SAYS(error_of("d:call=0"), "a whole number from 1");
    CHECK_SAYS(error_of("d:call=1x"), "\"call=1x\"");
    CHECK_SAYS(error_of("d:every=99999999999999999999"), "a whole number from 1");
    CHECK_SAYS(
        error_of("d:program=decod"),
        "\"program=decod\"; calls are chosen by store, load, decode, prefill, merge; did you mean decode? It takes");
    CHECK_SAYS(error_of("d:program=relayout"), "\"program=relayout\"; calls are chosen by");
    CHECK_SAYS(error_of("d:program=check"), "\"program=check\"; calls are chosen by");
    CHECK_SAYS(error_of("d:head_dim=63"), "head_dim");
    CHECK_SAYS(error_of("d:op=Relayout"), "Relayout");
    CHECK_SAYS(error_of("d:call=1,,every=2"), "it has no =");
    CHECK_SAYS(error_of("d:call=1,every=2,call=2"), "\"call=2\"; call was given before");
    CHECK_SAYS(error_of("d:program=store,program=store"), "program was given before");
    CHECK_SAYS(error_of("d:head_dim=64,head_dim=128"), "\"head_dim=128\"; head_dim was given before");
}

TEST_CASE("a spec agrees in the fields that are given, defaults too") {
    const char* spec = "op=MultiHeadCacheAttention,head_dim=64,group=4,cache_mode=block_table,layout=LNTH2D";
    CHECK(agrees("d", spec));
    CHECK(agrees("d:op=MultiHeadCacheAttention,head_dim=64", spec));
    CHECK(!agrees("d:op=KeyValueCache", spec));
    CHECK(agrees("d:quant_bit=0", spec));
    CHECK(!agrees("d:quant_bit=0", "op=MultiHeadCacheAttention,head_dim=64,quant_bit=8"));
    CHECK(agrees("d:layout=vllm:LBNHC", spec));
    CHECK(!agrees("d:layout=vllm:LBNHC", "op=MultiHeadCacheAttention,head_dim=64"));
    CHECK(agrees((std::string("d:") + spec).c_str(), spec));
}

TEST_CASE("a recording has every field of the batch") {
    std::set<std::string> known = {"struct_size", "batch_size", "num_layers", "alibi_slopes"};
    for (const auto& number : record::kCounts) known.emplace(number.name);
    for (const auto& number : record::kFractions) known.emplace(number.name);
    for (const auto& array : record::kArrays) known.emplace(array.name);
    for (const auto& table : record::kTables) known.emplace(table.name);
    std::set<std::string> fields;
    kvjit_struct_fields(
        [](void* to, const char* name, const char* field, const char*, size_t, size_t) {
            if (std::string(name) == "kvjit_batch") static_cast<std::set<std::string>*>(to)->insert(field);
        },
        &fields);
    CHECK(fields == known);
}
