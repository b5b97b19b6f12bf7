// merge against the definition in float64 (docs/semantics.md, section 2), and its special states.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "levels.h"
#include "numbers.h"
#include "support/guarded_buffer.h"
#include "support/rng.h"

#define X(name) extern "C" const kvjit::test::MergeProgram programs_##name;
#include "merge_cases.inc"
#undef X

using namespace kvjit;
using namespace kvjit::test;
using abi::i64;

namespace {

const std::vector<const MergeProgram*> kCases = {
#define X(name) &programs_##name,
#include "merge_cases.inc"
#undef X
};

/// parts x tokens x heads of random parts, between guard pages.
struct MergeCall {
    MergeCall(const MergeProgram& merge_program, std::uint64_t seed);

    void run(bool with_sum);
    i64 cell(i64 part, i64 token, i64 head) const { return (part * tokens + token) * heads + head; }
    float acc_at(i64 cell_index, i64 d) const {
        return get(acc.data() + bytes_of(program.partial, cell_index * program.head_dim), program.partial, d);
    }
    float output_at(i64 token, i64 head, i64 d) const {
        return get(output.data() + bytes_of(program.t1, (token * heads + head) * program.head_dim), program.t1, d);
    }
    void put_acc(i64 cell_index, i64 d, float value) {
        put(acc.data() + bytes_of(program.partial, cell_index * program.head_dim), program.partial, d, value);
    }
    float* max_data() { return reinterpret_cast<float*>(max.data()); }
    float* sum_data() { return reinterpret_cast<float*>(sum.data()); }
    float lse_at(i64 token, i64 head) const { return get(lse.data(), Type::kF32, token * heads + head); }

    const MergeProgram& program;
    Rng rng;
    i64 parts, tokens, heads;
    GuardedBuffer acc, max, sum, output, lse;
};

MergeCall::MergeCall(const MergeProgram& merge_program, std::uint64_t seed) : program(merge_program), rng(seed) {
    parts = rng.between(1, 7);
    tokens = rng.between(1, 4);
    heads = rng.between(1, 5);
    const Guard guard = rng.chance(0.5) ? Guard::kAfter : Guard::kBefore;
    const i64 cells = parts * tokens * heads, outputs = tokens * heads;
    const auto make = [&](Type type, i64 elements) {
        return GuardedBuffer(static_cast<std::size_t>(bytes_of(type, elements)), guard);
    };
    acc = make(program.partial, cells * program.head_dim);
    max = make(Type::kF32, cells);
    sum = make(Type::kF32, cells);
    output = make(program.t1, outputs * program.head_dim);
    lse = make(Type::kF32, outputs);
    for (i64 c = 0; c < cells; ++c) {
        max_data()[c] = static_cast<float>(rng.normal() * 20);
        sum_data()[c] = static_cast<float>(1 + 500 * rng.uniform());
        for (i64 d = 0; d < program.head_dim; ++d) put_acc(c, d, static_cast<float>(rng.normal() * 3));
    }
}

/// Token by token, so that an item's offsets matter.
void MergeCall::run(bool with_sum) {
    const i64 row_bytes = bytes_of(program.t1, program.head_dim), d = program.head_dim;
    const abi::MergeArgs args{reinterpret_cast<const char*>(acc.data()),
                              max_data(),
                              with_sum ? sum_data() : nullptr,
                              {reinterpret_cast<char*>(output.data()), heads * row_bytes, row_bytes},
                              reinterpret_cast<float*>(lse.data()),
                              heads,
                              1,
                              nullptr};
    for (i64 token = 0; token < tokens; ++token) {
        const i64 first = cell(0, token, 0), part = cell(1, 0, 0);
        const abi::MergeItem item{token,     token + 1, 0,     heads, parts, first * d, part * d,
                                  heads * d, d,         first, part,  heads, 1};
        program.merge(&args, &item);
    }
}

/// The definition: out = sum_p e^(max_p - M) acc_p / sum_p e^(max_p - M) sum_p, in float64.
void check_values(MergeCall& call, bool with_sum) {
    call.run(with_sum);
    const Type type = call.program.t1;
    const double tolerance = type == Type::kF16 ? 1e-3 : type == Type::kBf16 ? 4e-3 : 1e-6;
    const double smallest = type == Type::kF16 ? 0x1p-24 : 0;
    for (i64 token = 0; token < call.tokens; ++token)
        for (i64 head = 0; head < call.heads; ++head) {
            double largest = -kInf, total = 0;
            const auto cell = [&](i64 part) { return call.cell(part, token, head); };
            for (i64 p = 0; p < call.parts; ++p) largest = std::max<double>(largest, call.max_data()[cell(p)]);
            const auto weight = [&](i64 p) { return std::exp(call.max_data()[cell(p)] - largest); };
            for (i64 p = 0; p < call.parts; ++p) total += weight(p) * (with_sum ? call.sum_data()[cell(p)] : 1);
            CHECK(call.lse_at(token, head) == doctest::Approx(largest + std::log(total)).epsilon(2e-7));
            for (i64 d = 0; d < call.program.head_dim; ++d) {
                double wanted = 0, size = 0;
                for (i64 p = 0; p < call.parts; ++p) {
                    wanted += weight(p) * call.acc_at(cell(p), d) / total;
                    size += weight(p) * std::fabs(call.acc_at(cell(p), d)) / total;
                }
                CHECK(std::fabs(call.output_at(token, head, d) - wanted) <= tolerance * size + smallest);
            }
        }
    CHECK(call.output.slack_is_whole());
    CHECK(call.lse.slack_is_whole());
}

template <class F>
void for_each_call(F&& f) {
    for (const MergeProgram* program : kCases) {
        if (!runs_level(program->level)) continue;
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            CAPTURE(std::string(program->name));
            CAPTURE(seed);
            MergeCall call(*program, seed);
            f(call);
        }
    }
}

}  // namespace

TEST_CASE("merge of (acc, max, sum) is the whole") {
    for_each_call([](MergeCall& call) { check_values(call, true); });
}

TEST_CASE("merge of (output, lse) is the whole") {
    for_each_call([](MergeCall& call) { check_values(call, false); });
}

TEST_CASE("parts that saw no key change no bit, whatever they hold") {
    for_each_call([](MergeCall& call) {
        if (call.parts < 2) return;
        const i64 empty = call.rng.below(call.parts);
        const i64 cells = call.cell(1, 0, 0);
        for (i64 c = empty * cells; c < (empty + 1) * cells; ++c) {
            call.max_data()[c] = -kInf;
            call.sum_data()[c] = kNaN;
            for (i64 d = 0; d < call.program.head_dim; ++d) call.put_acc(c, d, kNaN);
        }
        call.run(true);
        const std::vector<std::byte> output = call.output.snapshot(), lse = call.lse.snapshot();
        // The same without the part: those behind it move up.
        std::memmove(call.acc.data() + bytes_of(call.program.partial, empty * cells * call.program.head_dim),
                     call.acc.data() + bytes_of(call.program.partial, (empty + 1) * cells * call.program.head_dim),
                     bytes_of(call.program.partial, (call.parts - empty - 1) * cells * call.program.head_dim));
        for (float* stat : {call.max_data(), call.sum_data()})
            std::memmove(stat + empty * cells, stat + (empty + 1) * cells,
                         (call.parts - empty - 1) * cells * sizeof(float));
        --call.parts;
        call.run(true);
        CHECK(call.output.snapshot() == output);
        CHECK(call.lse.snapshot() == lse);
    });
}

TEST_CASE("an output whose lse is infinite has weight 0; a NaN in it shows, and nothing else does") {
    for_each_call([](MergeCall& call) {
        const i64 other = call.rng.below(call.parts), cells = call.cell(1, 0, 0);
        for (i64 c = other * cells; c < (other + 1) * cells; ++c) call.max_data()[c] = -kInf;
        call.run(false);
        const std::vector<std::byte> output = call.output.snapshot(), lse = call.lse.snapshot();
        for (i64 c = other * cells; c < (other + 1) * cells; ++c) call.max_data()[c] = kInf;
        call.run(false);
        CHECK(call.output.snapshot() == output);
        CHECK(call.lse.snapshot() == lse);
        for (const float infinity : {-kInf, kInf}) {
            call.max_data()[call.cell(other, 0, 0)] = infinity;
            call.put_acc(call.cell(other, 0, 0), 1, kNaN);
            call.run(false);
            CHECK(std::isnan(call.output_at(0, 0, 1)));
            CHECK_FALSE(std::isnan(call.output_at(0, 0, 0)));
            CHECK_FALSE(std::isnan(call.lse_at(0, 0)));
            CHECK((call.parts > 1 || call.lse_at(0, 0) == -kInf));
        }
    });
}

TEST_CASE("no key in any part: output 0, lse -inf") {
    for_each_call([](MergeCall& call) {
        const bool with_sum = call.rng.chance(0.5);
        for (i64 c = 0; c < call.cell(call.parts, 0, 0); ++c) {
            call.max_data()[c] = !with_sum && call.rng.chance(0.5) ? kInf : -kInf;
            for (i64 d = 0; with_sum && d < call.program.head_dim; ++d) call.put_acc(c, d, kNaN);
        }
        call.run(with_sum);
        for (const std::byte byte : call.output.bytes()) CHECK(byte == std::byte{0});
        for (i64 token = 0; token < call.tokens; ++token) CHECK(call.lse_at(token, 0) == -kInf);
    });
}

TEST_CASE("a sum of -0 gives 0, in a part alone as beside others") {
    for_each_call([](MergeCall& call) {
        for (i64 c = 0; c < call.cell(call.parts, 0, 0); ++c) {
            for (i64 d = 0; d < call.program.head_dim; ++d) call.put_acc(c, d, -0.0f);
        }
        for (const i64 parts : {call.parts, i64{1}}) {
            call.parts = parts;
            call.run(true);
            for (const std::byte byte : call.output.bytes()) CHECK(byte == std::byte{0});
        }
    });
}

TEST_CASE("a NaN part makes its own row NaN and no other") {
    for_each_call([](MergeCall& call) {
        call.max_data()[call.cell(call.rng.below(call.parts), 0, 0)] = kNaN;
        call.run(true);
        for (i64 token = 0; token < call.tokens; ++token)
            for (i64 head = 0; head < call.heads; ++head) {
                const bool hit = token == 0 && head == 0;
                CHECK(std::isnan(call.lse_at(token, head)) == hit);
                CHECK(std::isnan(call.output_at(token, head, 0)) == hit);
            }
    });
}
