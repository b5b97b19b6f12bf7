// Layouts that cut rows or pages into pieces: what is stored and loaded, against the oracle's arithmetic on axes; and
// against whole rows, from which they differ in nothing else.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/call.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"
#include "kvjit/kvjit.h"
#include "support/rng.h"

namespace kvjit::test {
namespace {

/// head_dim is 40, page_size 12.
const std::vector<std::string>& cut_layouts() {
    static const std::vector<std::string> layouts = {
        // Rows, in blocks: pieces of lanes' sizes and of others, of one element, and of all of them.
        "cache_mode=block_table,page_size=12,layout=NHDTd8,value_layout=NHDT",
        "cache_mode=block_table,page_size=12,layout=NTHDd20",
        "cache_mode=block_table,page_size=12,layout=NHDTd5,value_layout=NTHDd10",
        "cache_mode=block_table,page_size=12,layout=NDHTd4,value_layout=DNTH",
        "cache_mode=block_table,page_size=12,layout=NHDTd40,value_layout=NHTD",
        "cache_mode=block_table,page_size=12,layout=NHTD,value_layout=NDTHd1",
        "cache_mode=block_table,page_size=12,layout=N2LHDTd8",
        "cache_mode=block_table,page_size=12,layout=NHDTd2",
        "cache_mode=block_table,page_size=12,layout=NLTHD2",
        "cache_mode=block_table,page_size=12,layout=THD2LN",
        "cache_mode=block_table,page_size=12,layout=DTHN,value_layout=HTDN",
        // Pages, and both.
        "cache_mode=block_table,page_size=12,layout=NTHt4D",
        "cache_mode=block_table,page_size=12,layout=2NTHDt6",
        "cache_mode=block_table,page_size=12,layout=NTHt12D,value_layout=NTHt1D",
        "cache_mode=block_table,page_size=12,layout=NHTDt4d8,value_layout=NHDTt3",
        "cache_mode=block_table,page_size=12,layout=NTL2Ht2Dd8",
        // Blocks at addresses.
        "cache_mode=block_pointers,page_size=12,layout=2LHDTd8",
        "cache_mode=block_pointers,page_size=12,layout=TL2HDt4d20",
        "cache_mode=block_pointers,page_size=12,layout=L2HDT",
        // A whole cache.
        "cache_mode=offset,layout=L2HDT",
        "cache_mode=offset,layout=DTHd8,value_layout=TDH",
        "cache_mode=page_table,page_size=12,layout=2HDTLd4",
        "cache_mode=token_table,layout=2LDTHd10",
        "cache_mode=sequence_table,layout=NHDTd8,value_layout=NHDT",
    };
    return layouts;
}

constexpr const char* kTypes[] = {"t1=f16", "t1=f32", "t1=i8,t2=i8", "t1=f32,t2=f16", "t1=f16,t2=f32"};

Case cut(const std::string& types, const std::string& layout, std::uint64_t seed) {
    Rng rng(seed);
    Case which = ragged("op=KeyValueCache,head_dim=40," + types + "," + layout);
    which.num_kv_heads = rng.between(1, 3);
    which.num_layers = std::string(which.spec.layout).find('L') == std::string::npos ? 1 : 3;
    which.past_tokens = PastTokens::kVectorEdge;
    which.num_repeat = rng.between(1, 3);
    which.spread = rng.chance(0.7) ? Spread::kPadded : Spread::kDense;
    which.outputs_whole = rng.chance(0.8);
    which.threads = static_cast<std::uint32_t>(rng.between(1, 3));
    const bool numbered = which.spec.cache_mode != KVJIT_BLOCK_POINTERS;
    if (numbered && rng.chance(0.4)) which.slots_by = SlotsBy::kChosen;
    return which;
}

/// Checks what a call stores and loads; the bytes that it loaded.
std::vector<std::byte> loaded(const Case& which, std::uint64_t seed) {
    CAPTURE(seed);
    const Call call = check_against_oracle(which, seed, seed + 1);
    std::vector<std::byte> bytes = call.key.packed();
    if (!call.value.present()) return bytes;
    const std::vector<std::byte> values = call.value.packed();
    bytes.insert(bytes.end(), values.begin(), values.end());
    return bytes;
}

TEST_CASE("rows and pages in pieces: what is stored and loaded") {
    // Each layout in the first types, and in two more, so that each of those meets 12 layouts.
    std::uint64_t seed = 500;
    std::size_t type = 1;
    for (const std::string& layout : cut_layouts()) {
        for (const char* types : {kTypes[0], kTypes[type], kTypes[type + 1]}) {
            CAPTURE(types);
            CAPTURE(layout);
            CHECK(!loaded(cut(types, layout, seed), seed).empty());
            seed += 2;
        }
        type = type == 1 ? 3 : 1;
    }
}

TEST_CASE("rows of all sizes in pieces") {
    std::uint64_t seed = 900;
    for (const int head_dim : {8, 64, 96, 128, 256}) {
        for (const int piece : {1, 2, 8, 16, head_dim / 2, head_dim}) {
            if (head_dim % piece != 0) continue;
            const std::string spec = "op=KeyValueCache,t1=f16,head_dim=" + std::to_string(head_dim) +
                                     ",cache_mode=block_table,page_size=16,layout=NHDTd" + std::to_string(piece);
            CAPTURE(spec);
            for (const char* values : {"", ",value_layout=NHDT"}) {
                Case which = ragged(spec + values);
                which.past_tokens = PastTokens::kFew;
                CHECK(!loaded(which, seed).empty());
                seed += 2;
            }
        }
    }
}

TEST_CASE("a layout changes where elements lie, and nothing that is loaded") {
    const std::string base = "op=KeyValueCache,head_dim=64,t1=f32,t2=f16,cache_mode=block_table,page_size=16,layout=";
    std::vector<std::byte> whole;
    for (const char* layout : {"NHTD", "NHDTd8", "NTHDd16", "NHDT", "NTHt4D", "NHTDt8d8", "NHTD,value_layout=NHDT"}) {
        CAPTURE(layout);
        Case which = ragged(base + layout);
        which.past_tokens = PastTokens::kFew;
        const std::vector<std::byte> bytes = loaded(which, 77);
        if (whole.empty()) whole = bytes;
        CHECK(bytes == whole);
    }
}

/// The error of asking for a kernel of the spec.
std::string refusal(const std::string& spec) {
    const kvjit_spec asked = spec_of(spec);
    kvjit_kernel* kernel = nullptr;
    kvjit_error error;
    kvjit_error_init(&error);
    const kvjit_status status = kvjit_engine_kernel(shared_engine(), &asked, chosen_target().get(), &kernel, &error);
    CHECK(status == KVJIT_BAD_SPEC);
    kvjit_kernel_release(kernel);
    return std::string(error.argument) + ": " + error.message;
}

TEST_CASE("attention over rows or pages in pieces is refused, and the error names the layout to move to") {
    const std::string base = "op=MultiHeadCacheAttention,head_dim=64,page_size=16,";
    CHECK(refusal(base + "layout=vllm:rocm") ==
          "layout: layout is NHDTd8; attention needs rows whose elements are neighbours; relayout the cache to "
          "layout=NHTD, say (op Relayout)");
    CHECK(refusal(base + "cache_mode=block_table,layout=NHTD,value_layout=NHDT") ==
          "value_layout: value_layout is NHDT; attention needs rows whose elements are neighbours; relayout the cache "
          "to value_layout=NHTD, say (op Relayout)");
    CHECK(refusal(base + "cache_mode=block_table,layout=NTH2t4D") ==
          "layout: layout is NTH2t4D; attention needs tokens of a page in one piece; relayout the cache to "
          "layout=NTH2D, say (op Relayout)");
}

TEST_CASE("attention over split axes that cut nothing") {
    for (const char* layout : {"NHDTd64", "NTHt16D", "NTHDt16d64", "NHDTd64,value_layout=NTHt16D"}) {
        CAPTURE(layout);
        Case which = ragged(std::string("op=MultiHeadCacheAttention,head_dim=64,group=2,page_size=16,cache_mode=") +
                            "block_table,layout=" + layout);
        which.past_tokens = PastTokens::kFew;
        check_against_oracle(which, 31, 32);
    }
}

}  // namespace
}  // namespace kvjit::test
