// Specs: explained, listed, read from lists.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "child.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

using Json = nlohmann::json;

TEST_CASE("layouts that have a name are listed in columns, or by their names alone") {
    const ChildResult all = run_kvjit({"spec", "list", "layouts"});
    CHECK(all.exit_code == 0);
    const std::size_t axes = all.out.find("axes"), whose = all.out.find("whose");
    std::istringstream lines(all.out);
    int count = -1;  // without the columns' names
    for (std::string line; std::getline(lines, line); ++count) {
        CAPTURE(line);
        CHECK((line[axes - 1] == ' ' && line[axes] != ' ' && line[whose - 1] == ' ' && line[whose] != ' '));
        CHECK(line.size() <= 160);
    }
    CHECK(count > 30);
    const ChildResult names = run_kvjit({"spec", "list", "layouts", "--names"});
    CHECK(names.exit_code == 0);
    CHECK(std::ranges::count(names.out, '\n') == count);
    CHECK(mentions(names.out, "\nvllm:LBNHC\n"));
    CHECK(!mentions(names.out, " "));
    std::istringstream each(names.out);
    for (std::string name; std::getline(each, name);) {
        CAPTURE(name);
        CHECK(mentions(all.out, "\n" + name + " "));
    }
    CHECK(mentions(run_kvjit({"inspect", "layout=ksana", "--images"}).out, "store"));
    for (const auto& arguments : {std::vector<std::string>{"spec"},
                                  {"spec", "list"},
                                  {"spec", "list", "colours"},
                                  {"spec", "show"},
                                  {"spec", "list", "layouts", "more"}}) {
        const ChildResult refused = run_kvjit(arguments);
        CHECK(refused.exit_code == 2);
        CHECK(refused.out.empty());
        CHECK(!refused.err.empty());
    }
}

TEST_CASE("explain says which type auto stands for") {
    CHECK(mentions(run_kvjit({"spec", "explain", "t1=bf16"}).out, "t2              auto: bf16               default"));
    const ChildResult quantised = run_kvjit({"spec", "explain", "t1=bf16,quant_bit=8"});
    CHECK_MESSAGE(mentions(quantised.out, "auto: i8 "), quantised.out);
    CHECK_MESSAGE(mentions(quantised.out, "auto: bf16 "), quantised.out);
}

TEST_CASE("explain tells of each field that counts its value and where that is from") {
    const ChildResult shown = run_kvjit({"spec", "explain", "layout=vllm:LBNHC", "page_size=16"});
    CHECK(shown.exit_code == 0);
    CHECK(shown.out.starts_with("op=MultiHeadCacheAttention,cache_mode=block_table,page_size=16,layout=LNTH2D\n"));
    const Json fields = json_of({"spec", "explain", "layout=vllm:LBNHC,page_size=16", "--json"})["fields"];
    const auto from = [&](const std::string& name) {
        for (const Json& field : fields) {
            if (field["field"] == name)
                return field["from"].get<std::string>() + " " + (field["counts"] ? "counts" : "doesn't");
        }
        return std::string();
    };
    CHECK(from("page_size") == "given counts");
    CHECK(from("cache_mode") == "by the layout's name counts");
    CHECK(from("head_dim") == "default counts");
    CHECK(from("t3") == "default doesn't");
    CHECK(!mentions(shown.out, "\nt3 "));
    CHECK(mentions(run_kvjit({"spec", "explain", "op=Merge", "--all"}).out, "doesn't count"));
    CHECK(mentions(run_kvjit({"spec", "explain", "head_dim=12"}).err, "head_dim is \"12\""));
}

TEST_CASE("fields, ops and values are listed") {
    CHECK(run_kvjit({"spec", "list", "values", "t3", "--names"}).out == "auto\nf32\nf16\nbf16\n");
    CHECK(mentions(run_kvjit({"spec", "list", "values", "head_dim"}).out, "a multiple of 8 from 8 to 512"));
    CHECK(mentions(run_kvjit({"spec", "list", "ops"}).out, "\nMerge  "));
    CHECK(mentions(run_kvjit({"spec", "list", "fields", "--names"}).out, "\nquant_group\n"));
    CHECK(json_of({"spec", "list", "layouts", "--json"})[0].contains("axes"));
    CHECK(mentions(run_kvjit({"spec", "list", "values"}).err, "FIELD is missing"));
    CHECK(mentions(run_kvjit({"spec", "list", "values", "hed_dim"}).err, "did you mean head_dim?"));
    CHECK(mentions(run_kvjit({"spec", "list", "ops", "t1"}).err, "'t1' is one word too many"));
}

TEST_CASE("a bad spec names the field and what it takes") {
    const ChildResult result = run_kvjit({"inspect", "head_dim=12"});
    CHECK(mentions(result.err, "head_dim"));
    CHECK(mentions(result.err, "multiple of 8"));
}

TEST_CASE("a bundle's lists of specs: what is left out is named, what is a mistake is refused") {
    const TemporaryFolder folder;
    const std::string bundle = folder.path("kernels.kvjb");
    const std::string specs = folder.write(
        "specs.txt", "op=KeyValueCache layout={L2HTD,N2LTHD} cache_mode={offset,block_table} head_dim=8\n");
    const auto create = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = {"bundle", "create", bundle, "--targets", "x86-64"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_kvjit(arguments);
    };
    const ChildResult made = create({"--specs", specs});
    CHECK(made.exit_code == 0);
    CHECK_MESSAGE(mentions(made.out, "2 specs"), made.out);
    CHECK_MESSAGE(
        mentions(made.err,
                 "left out: " + specs +
                     ": line 1: op=KeyValueCache,layout=L2HTD,cache_mode=block_table,head_dim=8: layout is L2HTD; axis "
                     "N stands in the layout of a block_table or sequence_table"),
        made.err);
    const ChildResult refused = create({"op=Merge,head_dim={8,100}"});
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(mentions(refused.err, "line 1: no spec has head_dim=100"), refused.err);
    const ChildResult too_many = create({"op=Merge,head_dim={8,16,24}", "--max-combinations", "2"});
    CHECK(too_many.exit_code == 2);
    CHECK_MESSAGE(mentions(too_many.err, "max_combinations is 2"), too_many.err);
}

}  // namespace
}  // namespace kvjit::test
