#include "conformance/judge.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace kvjit::test {
namespace {

std::string difference_text(const std::string& name, std::size_t at, double got, double expected) {
    char text[160];
    std::snprintf(text, sizeof text, "[%zu] is %.9g, expected %.9g", at, got, expected);
    return name + text;
}

double distance(double got, double expected) {
    if (got == expected || (std::isnan(got) && std::isnan(expected))) return 0;
    if (std::isfinite(got) && std::isfinite(expected)) return std::fabs(got - expected);
    return std::numeric_limits<double>::infinity();
}

/// A tensor's bytes as they were before the call, for the oracle to change.
struct Image {
    std::vector<std::byte> bytes;
    Strided strided;

    explicit Image(const Placed& placed) : bytes(placed.remembered()), strided(placed.strided()) {
        strided.data = bytes.data();
    }
};

bool is_float(int dtype) {
    return dtype == KVJIT_F32 || dtype == KVJIT_F16 || dtype == KVJIT_BF16;
}

/// Every byte as the oracle left it. Where the oracle wrote a NaN, any NaN will do.
std::string compare_image(const std::string& name, const Placed& placed, const Image& expected) {
    const int dtype = placed.strided().dtype;
    const std::size_t width = bytes_of(dtype);
    const std::byte* got = placed.strided().data;
    const bool same = expected.bytes.empty() || std::memcmp(got, expected.bytes.data(), expected.bytes.size()) == 0;
    for (std::size_t at = 0; !same && at < expected.bytes.size(); at += width) {
        if (std::memcmp(got + at, expected.bytes.data() + at, width) == 0) continue;
        const auto index = static_cast<std::int64_t>(at / width);
        const double is = read_element(got, dtype, index);
        const double want = read_element(expected.bytes.data(), dtype, index);
        const bool untouched = std::memcmp(expected.bytes.data() + at, placed.remembered().data() + at, width) == 0;
        if (is_float(dtype) && !untouched && std::isnan(is) && std::isnan(want)) continue;
        return difference_text(name, at / width, is, want) + (untouched ? " (must stay untouched)" : "");
    }
    return placed.gaps_unchanged() ? "" : name + ": bytes around the tensor were written";
}

/// (K, Hkv, D) as KeyValueCache returns it: rounded to t1, each head num_repeat times.
std::string compare_loaded(const std::string& name, const Call& call, const Placed& got, const Dense& expected) {
    const Problem& problem = call.problem;
    const std::int64_t head_dim = problem.spec.head_dim;
    std::size_t at = 0;
    for (std::int64_t t = 0; t < problem.kvstarts.back(); ++t) {
        for (std::int64_t h = 0; h < problem.num_kv_heads * problem.num_repeat; ++h) {
            const std::int64_t from = (t * problem.num_kv_heads + h / problem.num_repeat) * head_dim;
            for (std::int64_t d = 0; d < head_dim; ++d, ++at) {
                std::byte rounded[8];
                write_element(rounded, problem.spec.t1, 0,
                              static_cast<double>(expected[static_cast<std::size_t>(from + d)]));
                const double want = read_element(rounded, problem.spec.t1, 0);
                const double is = got.strided().at(t, h, d);
                const bool same =
                    (is == want && std::signbit(is) == std::signbit(want)) || (std::isnan(is) && std::isnan(want));
                if (!same) return difference_text(name, at, is, want);
            }
        }
    }
    return "";
}

std::string judge_attention(const Call& call, const Dense& key, const Dense& value) {
    const Attended expected = oracle_attend(call.problem, call.query.strided(), key, value, call.mask.strided());
    const double tolerance = tolerance_of(call.problem.spec.t1);
    std::string wrong = compare_close("attn_output", numbers_of(call.attn_output), expected.output, tolerance);
    if (wrong.empty() && call.lse.present()) {
        wrong = compare_close("lse", numbers_of(call.lse), expected.lse, tolerance, 1);
    }
    return wrong;
}

CacheMemory memory_of(const std::vector<Image>& images) {
    std::vector<Strided> all;
    for (const Image& each : images) all.push_back(each.strided);
    return CacheMemory(std::move(all));
}

std::string compare_images(const std::string& name, const std::vector<Placed>& got,
                           const std::vector<Image>& expected) {
    for (std::size_t i = 0; i < got.size(); ++i) {
        const std::string number = got.size() == 1 ? "" : " " + std::to_string(i);
        if (std::string wrong = compare_image(name + number, got[i], expected[i]); !wrong.empty()) return wrong;
    }
    return "";
}

std::string judge_cache(const Call& call) {
    const std::vector<Image> caches(call.cache.begin(), call.cache.end()), scales(call.scale.begin(), call.scale.end());
    const CacheMemory cache = memory_of(caches), scale = memory_of(scales);
    if (call.which.stores == Stores::kYes) {
        oracle_store(call.problem, call.current_key.strided(), call.current_value.strided(), cache, scale);
    }
    std::string wrong = compare_images("cache", call.cache, caches);
    if (wrong.empty()) wrong = compare_images("scale", call.scale, scales);
    if (!wrong.empty()) return wrong;
    const Dense key = oracle_load(call.problem, 0, cache, scale);
    const Dense value = oracle_load(call.problem, 1, cache, scale);
    if (call.problem.spec.op == KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION) return judge_attention(call, key, value);
    if (call.key.present()) wrong = compare_loaded("key", call, call.key, key);
    if (wrong.empty() && call.value.present()) wrong = compare_loaded("value", call, call.value, value);
    return wrong;
}

}  // namespace

double tolerance_of(int t1) {
    return t1 == KVJIT_F32 ? 1e-5 : t1 == KVJIT_F16 ? 2e-3 : 1.6e-2;
}

std::string compare_close(const std::string& name, const std::vector<double>& got, const std::vector<double>& expected,
                          double tolerance, double floor) {
    double reference = floor;
    for (const double number : expected) {
        if (std::isfinite(number)) reference = std::max(reference, std::fabs(number));
    }
    std::size_t worst = 0;
    double worst_distance = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double off = distance(got[i], expected[i]);
        if (off > worst_distance) worst = i;
        worst_distance = std::max(worst_distance, off);
    }
    if (worst_distance <= tolerance * reference) return "";
    char text[80];
    std::snprintf(text, sizeof text, "; off by %.3g of the largest, %.3g is allowed", worst_distance / reference,
                  tolerance);
    return difference_text(name, worst, got[worst], expected[worst]) + text;
}

std::vector<double> numbers_of(const Placed& tensor) {
    const auto bytes = tensor.packed();
    const int dtype = tensor.strided().dtype;
    std::vector<double> numbers(bytes.size() / bytes_of(dtype));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = read_element(bytes.data(), dtype, static_cast<std::int64_t>(i));
    }
    return numbers;
}

std::string judge(const Call& call) {
    for (const Placed* input : call.inputs()) {
        if (!input->unchanged()) return "an input was written";
    }
    for (const Placed* output : call.outputs()) {
        if (!output->gaps_unchanged()) return "bytes between or around an output's elements were written";
    }
    if (call.problem.spec.op != KVJIT_OP_MULTI_HEAD_ATTENTION) return judge_cache(call);
    return judge_attention(call, oracle_dense(call.problem, call.key.strided()),
                           oracle_dense(call.problem, call.value.strided()));
}

}  // namespace kvjit::test
