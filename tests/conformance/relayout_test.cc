// Differential test of relayouts: random ones, byte for byte against the oracle.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/names.h"
#include "conformance/options.h"
#include "conformance/ragged.h"
#include "conformance/relayout_call.h"
#include "kvjit/kvjit.hpp"

namespace kvjit::test {
namespace {

// ---- Specs ---------------------------------------------------------------------------------------------------------

/// Formats of a cache. "D": one scale a row.
const std::vector<std::string> kFormats = {"t1=f16",
                                           "t1=f32",
                                           "t1=f16,t2=f32",
                                           "t1=f32,t2=f16",
                                           "t1=f16,quant_bit=8,quant_group=8",
                                           "t1=f16,quant_bit=8,quant_group=8,t3=f32",
                                           "t1=f32,quant_bit=8,quant_group=32,t3=f16",
                                           "t1=f16,quant_bit=8,quant_group=D",
                                           "t1=f16,quant_bit=4,quant_group=8",
                                           "t1=f32,quant_bit=4,quant_group=32",
                                           "t1=f16,quant_bit=4,quant_group=D,t3=f32"};
const std::vector<std::string> kHeadDims = {"64", "128", "32", "96", "8", "16", "24", "40", "80", "256"};
const std::vector<std::string> kPageSizes = {"16", "1", "3", "7", "128"};
const std::vector<std::string> kTokenModes = {"offset", "token_table", "page_table"};
const std::vector<std::string> kModes = {"offset",      "token_table",    "page_table",
                                         "block_table", "block_pointers", "sequence_table"};

std::string format_of(std::string format, const std::string& head_dim) {
    if (const std::size_t at = format.find("=D"); at != format.npos) format.replace(at + 1, 1, head_dim);
    const std::size_t at = format.find("quant_group=32");
    if (at != format.npos && std::stoi(head_dim) % 32 != 0) format.replace(at, 14, "quant_group=4");
    return format;
}

/// Pages of a token are as many blocks as tokens, each an allocation of its own: not where they lie anywhere.
std::string paging(const std::string& mode, Rng& rng) {
    if (mode != "page_table" && mode != "block_table" && mode != "block_pointers") return "";
    std::string size = rng.pick(kPageSizes);
    if (size == "1" && mode == "block_pointers") size = "2";
    return ",page_size=" + size;
}

std::string shuffled(std::string axes, Rng& rng) {
    std::vector<char> letters(axes.begin(), axes.end());
    rng.shuffle(letters);
    return {letters.begin(), letters.end()};
}

/// Any order of axes that the mode takes.
std::string random_layout(Rng& rng) {
    const std::string mode = rng.pick(kModes);
    std::string axes = "TH";
    if (rng.chance(0.6)) axes += 'L';
    if (mode == "block_table" || mode == "sequence_table") axes += 'N';
    const bool both = mode == "block_pointers" || rng.chance(0.65);
    std::string text = ",cache_mode=" + mode + ",layout=" + shuffled(both ? axes + '2' : axes, rng) + "D";
    if (!both && rng.chance(0.6)) text += ",value_layout=" + shuffled(axes, rng) + "D";
    return text + paging(mode, rng);
}

std::string named_layout(Rng& rng) {
    static const std::vector<Named> names = names_of_whole_rows();
    const Named& named = rng.pick(names);
    std::string text = ",layout=" + named.name;
    if (named.lacks_page_size()) return text + ",page_size=" + std::to_string(rng.between(2, 20));
    if (named.sets.find("cache_mode") != std::string::npos) return text;
    const std::string mode = rng.pick(kTokenModes);
    return text + ",cache_mode=" + mode + paging(mode, rng);
}

std::string random_spec(const std::string& common, const std::string& format, Rng& rng) {
    const std::string layout = rng.chance(0.5) ? named_layout(rng) : random_layout(rng);
    const bool addresses = layout.find("block_pointers") != std::string::npos || layout.find("=ksana,") < layout.npos;
    return "op=KeyValueCache," + common + "," + format + layout +
           (!addresses && rng.chance(0.5) ? ",index_type=i32" : "");
}

// ---- Cases ---------------------------------------------------------------------------------------------------------

SideCase random_side(const std::string& spec, Rng& rng) {
    SideCase side{spec_of(spec)};
    const bool has_layers = std::string(side.spec.layout).find('L') != std::string::npos;
    side.layer_tables = rng.chance(0.3);
    side.num_layers = has_layers || side.layer_tables ? rng.between(1, 3) : 1;
    side.rows = static_cast<TableRows>(rng.below(3));
    const auto mode = side.spec.cache_mode;
    const bool paged = mode == KVJIT_PAGE_TABLE || mode == KVJIT_BLOCK_TABLE || mode == KVJIT_BLOCK_POINTERS;
    side.keys_by = static_cast<KeysBy>(rng.below(paged ? 3 : 2));
    if (mode == KVJIT_TOKEN_TABLE) side.keys_by = KeysBy::kStarts;
    if (side.keys_by == KeysBy::kLastPage) side.rows = TableRows::kCsr;
    side.given = static_cast<Given>(rng.below(3));
    side.guard = static_cast<Guard>(rng.below(2));
    side.spread = static_cast<Spread>(rng.below(3));
    side.scale_spread = static_cast<Spread>(rng.below(3));
    side.parts = static_cast<Parts>(rng.below(3));
    return side;
}

std::vector<std::int64_t> random_counts(Rng& rng) {
    static const std::vector<std::int64_t> batches = {3, 1, 5, 3, 1, 5, 3, 1, 5, 0};
    std::vector<std::int64_t> counts(static_cast<std::size_t>(rng.pick(batches)));
    for (std::int64_t& count : counts) {
        count = rng.chance(0.15) ? 0 : rng.chance(0.1) ? rng.between(250, 300) : rng.between(1, 40);
    }
    return counts;
}

/// Sequences of which so many tokens take part.
std::vector<Sequence> random_sequences(const std::vector<std::int64_t>& counts, std::int64_t ranks, std::int64_t rank,
                                       Rng& rng) {
    std::vector<Sequence> sequences;
    for (const std::int64_t count : counts) {
        const std::int64_t past = rng.chance(0.4) ? 0 : rng.below(40);
        std::int64_t first = past;
        while (first % ranks != rank) ++first;
        const std::int64_t last = first + (count - 1) * ranks;
        const std::int64_t fresh = count == 0 ? rng.below(first - past + 1) : last + 1 - past + rng.below(ranks);
        sequences.push_back({past, fresh});
    }
    return sequences;
}

std::int64_t random_rank(std::int64_t& ranks, Rng& rng) {
    static const std::vector<std::int64_t> many = {1, 1, 1, 1, 2, 3, 7};
    ranks = rng.pick(many);
    return rng.below(ranks);
}

/// Room for `count` of them on either side, and where they begin.
void random_range(std::int64_t count, std::int64_t& room, std::int64_t& first, Rng& rng) {
    room = count + rng.below(2);
    first = rng.below(room - count + 1);
}

class RandomRelayout {
public:
    explicit RandomRelayout(std::uint64_t seed) : rng_(seed) {
        const std::string head_dim = rng_.pick(kHeadDims);
        const std::string common = "head_dim=" + head_dim + (rng_.chance(0.5) ? ",starts_type=i32" : "");
        from_case_ = random_side(random_spec(common, format(true, head_dim), rng_), rng_);
        to_case_ = random_side(random_spec(common, format(false, head_dim), rng_), rng_);
        from_case_.shares = rng_.chance(0.3);
        from_case_.repeats_heads = rng_.chance(0.1);
        choose_numbers();
        const std::vector<std::int64_t> counts = random_counts(rng_);
        from_.emplace(from_case_, random_sequences(counts, numbers_.from_ranks, numbers_.from_rank, rng_), rng_);
        to_.emplace(to_case_, random_sequences(counts, numbers_.to_ranks, numbers_.to_rank, rng_), rng_);
        to_->cache().fill_bytes(rng_);
        are_alike(from_case_.spec, to_case_.spec) ? from_->cache().fill_bytes(rng_)
                                                  : from_->cache().fill_numbers(rng_, rng_.chance(0.2));
    }

    RelayoutCall call() {
        RelayoutCall call(*from_, *to_);
        call.numbers = numbers_;
        call.from_layer = from_layer_;
        call.to_layer = to_layer_;
        call.run.threads = static_cast<std::uint32_t>(rng_.between(1, 3));
        call.run.order = static_cast<Order>(rng_.below(4));
        call.run.check_level = static_cast<int>(rng_.below(3));
        return call;
    }

private:
    /// As often the same on both sides, where rows are copied as they are. Codes of i8 go to nothing else.
    std::string format(bool source, const std::string& head_dim) {
        if (source) codes_ = rng_.chance(0.1);
        if (codes_) return "t1=i8";
        if (source || rng_.chance(0.6)) format_ = rng_.pick(kFormats);
        return format_of(format_, head_dim);
    }

    void choose_numbers() {
        kvjit_relayout_init(&numbers_);
        numbers_.from_rank = random_rank(numbers_.from_ranks, rng_);
        numbers_.to_rank = random_rank(numbers_.to_ranks, rng_);
        const std::int64_t heads = rng_.between(1, 3);
        random_range(heads, from_case_.num_kv_heads, numbers_.from_head, rng_);
        random_range(heads, to_case_.num_kv_heads, numbers_.to_head, rng_);
        const bool all = from_case_.num_kv_heads == heads && to_case_.num_kv_heads == heads;
        numbers_.num_kv_heads = all && rng_.chance(0.5) ? 0 : heads;
        const std::int64_t layers = rng_.between(1, std::min(from_case_.num_layers, to_case_.num_layers));
        from_layer_ = rng_.below(from_case_.num_layers - layers + 1);
        to_layer_ = rng_.below(to_case_.num_layers - layers + 1);
        const bool each = from_case_.num_layers == layers && to_case_.num_layers == layers;
        numbers_.num_layers = each && rng_.chance(0.5) ? 0 : layers;
    }

    Rng rng_;
    bool codes_ = false;
    std::string format_;
    kvjit_relayout numbers_;
    std::int64_t from_layer_ = 0, to_layer_ = 0;
    SideCase from_case_, to_case_;
    std::optional<Side> from_, to_;
};

std::string reproducer(int k) {
    return "kvjit_conformance --seed " + std::to_string(options().seed) + " --target " + options().target +
           " -tc='random relayouts*' --case " + std::to_string(k);
}

void check_case(int k) {
    RandomRelayout random(options().seed * 1'000'003 + static_cast<std::uint64_t>(k));
    const RelayoutCall call = random.call();
    const std::string wrong = judge_relayout(call);
    // Described before: doctest makes a message under a lock that the description's own checks take.
    const std::string description = describe(call);
    CHECK_MESSAGE(wrong.empty(), wrong << "\n    " << description << "\n    reproduce: " << reproducer(k));
}

TEST_CASE("random relayouts agree with the oracle") {
    const Options& chosen = options();
    const int count = chosen.on_cuda() ? (chosen.cases + 3) / 4 : chosen.cases;
    std::printf("seed %llu: %d relayouts\n", static_cast<unsigned long long>(chosen.seed), count);
    std::fflush(stdout);
    if (chosen.only >= 0) return check_case(chosen.only);
    for (int k = chosen.shard; k < count; k += chosen.shards) check_case(k);
}

TEST_CASE("the random relayouts vary every field of a destination") {
    std::map<std::string, std::set<std::string>> values;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        RandomRelayout random(seed);  // has the sides that the call points to
        const RelayoutCall call = random.call();
        KernelSpec spec;
        static_cast<kvjit_spec&>(spec) = relayout_spec_of(call.from->which().spec, call.to->which().spec);
        const auto text = spec.text();
        REQUIRE(text);
        for (const std::string& name : spec_fields()) values[name].insert(value_of(*text, name));
    }
    for (const auto& [name, seen] : values) {
        if (name.starts_with("to_")) CHECK_MESSAGE(seen.size() > 1, name);
    }
}

}  // namespace
}  // namespace kvjit::test
