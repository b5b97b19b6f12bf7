// Engines' layouts by their names: each through every operator, against the oracle and against one another.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "conformance/call.h"
#include "conformance/judge.h"
#include "conformance/names.h"
#include "conformance/ragged.h"
#include "kvjit/kvjit.h"

namespace kvjit::test {
namespace {

/// A small batch: a new prompt, one that goes on, and sequences that decode.
Case small(const Named& named, const std::string& fields) {
    Case which = ragged(fields + ",layout=" + named.name + (named.lacks_page_size() ? ",page_size=16" : ""));
    which.batch_size = 3;
    which.new_tokens = NewTokens::kFew;
    which.past_tokens = PastTokens::kFew;
    which.num_layers = named.order.find('L') == std::string::npos ? 1 : 3;
    which.decoding = 1;
    // req_to_token has a row for each request that there is, in whatever order.
    which.rows = named.name == "sglang" ? TableRows::kIndexed : TableRows::kPadded;
    return which;
}

constexpr const char* kTypes[] = {"head_dim=64,t1=f16", "head_dim=64,t1=f32,quant_bit=8,quant_group=16"};

TEST_CASE("caches by engines' names: what is stored and loaded") {
    for (const std::string types : kTypes) {
        std::vector<std::vector<std::byte>> loaded;  // is the same, whatever the layout
        const bool quantised = types.find("quant_bit") != std::string::npos;
        for (const Named& named : quantised ? names_of_whole_rows() : all_names()) {
            CAPTURE(named.name);
            const Call call = check_against_oracle(small(named, "op=KeyValueCache," + types), 71, 72);
            loaded.push_back(call.key.packed());
            const std::vector<std::byte> values = call.value.packed();
            loaded.back().insert(loaded.back().end(), values.begin(), values.end());
            CHECK(loaded.back() == loaded.front());
        }
        CHECK(loaded.size() > 30);
    }
}

TEST_CASE("caches by engines' names: attention over what is stored") {
    for (const std::string types : kTypes) {
        std::vector<std::vector<double>> outputs;  // close to one another: sums go by pages
        for (const Named& named : names_of_whole_rows()) {
            CAPTURE(named.name);
            const Call call = check_against_oracle(small(named, "op=MultiHeadCacheAttention,group=4," + types), 71, 72);
            outputs.push_back(numbers_of(call.attn_output));
            CHECK(compare_close("attn_output", outputs.back(), outputs.front(), tolerance_of(call.which.spec.t1)) ==
                  "");
        }
    }
}

TEST_CASE("caches by engines' names: an engine's one spec makes attention without a cache, too") {
    for (const Named& named : names_of_whole_rows()) {
        CAPTURE(named.name);
        Case which = small(named, "op=MultiHeadCacheAttention,group=4,head_dim=64,t1=f32");
        kvjit_error error;
        kvjit_error_init(&error);
        REQUIRE(kvjit_spec_for_op(&which.spec, KVJIT_OP_MULTI_HEAD_ATTENTION, &which.spec, &error) == KVJIT_OK);
        check_against_oracle(which, 71, 72);
    }
}

}  // namespace
}  // namespace kvjit::test
