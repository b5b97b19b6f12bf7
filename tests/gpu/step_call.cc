// What of a step kvjit sees, and whether what it wrote is right.
#include <algorithm>
#include <cmath>

#include "gpu/step.h"

namespace kvjit::test {
namespace {

constexpr double kF32Tolerance = 1e-5, kF16Tolerance = 2e-3;  // docs/semantics.md, section 9

/// Of `got` the first expected.size() elements are as expected, the others unwritten.
std::string compare(const char* name, const std::vector<std::byte>& got, int dtype, const std::vector<double>& expected,
                    double tolerance, double floor) {
    double largest = floor;
    for (const double each : expected) largest = std::max(largest, std::isfinite(each) ? std::abs(each) : 0);
    const auto count = static_cast<std::int64_t>(got.size() / bytes_of(dtype));
    for (std::int64_t i = 0; i < count; ++i) {
        const double value = read_element(got.data(), dtype, i);
        const bool beyond = i >= static_cast<std::int64_t>(expected.size());
        const double wanted = beyond ? std::nan("") : expected[static_cast<std::size_t>(i)];
        const bool good = beyond || std::isnan(wanted)
                              ? std::isnan(value)
                              : value == wanted || std::abs(value - wanted) <= tolerance * largest;
        if (good) continue;
        return std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(value) +
               (beyond ? " but belongs to nobody" : " instead of " + std::to_string(wanted));
    }
    return "";
}

std::string compare_bytes(const char* name, const std::vector<std::byte>& got, const std::vector<std::byte>& expected) {
    const auto [at, other] = std::ranges::mismatch(got, expected);
    if (at == got.end()) return "";
    return std::string(name) + " differs from byte " + std::to_string(at - got.begin()) + " on";
}

}  // namespace

Batch Step::batch() const {
    Batch batch;
    batch.batch_size = limits_.sequences;
    batch.num_heads = problem_.num_heads;
    batch.num_kv_heads = problem_.num_kv_heads;
    batch.num_layers = problem_.num_layers;
    batch.max_seqlen = limits_.new_tokens;
    batch.max_kvlen = limits_.keys;
    const std::string_view layout = spec_.layout;
    const bool blocks = spec_.cache_mode == KVJIT_BLOCK_TABLE;
    const std::int64_t slots = cache_.host().shape[layout.find(blocks ? 'N' : 'T')];
    (blocks ? batch.num_blocks : batch.max_tokens) = slots;
    batch.seqstarts = seqstarts_.indices();
    batch.kvstarts = kvstarts_.indices();
    batch.start_pos = start_pos_.indices();
    batch.cachestarts = table_.view();
    return batch;
}

Batch Step::host_batch() const {
    Batch batch = this->batch();
    batch.seqstarts = problem_.seqstarts.data();
    batch.kvstarts = problem_.kvstarts.data();
    batch.start_pos = problem_.start_pos.data();
    batch.cachestarts.data = const_cast<std::byte*>(table_.bytes().data());
    return batch;
}

Tensors Step::tensors() const {
    Tensors tensors;
    tensors.query = query_.view();
    tensors.current_key = key_.view();
    tensors.current_value = value_.view();
    tensors.cache = cache_.view();
    tensors.scale = scale_.view();
    tensors.attn_output = output_.view();
    tensors.lse = lse_.view();
    return tensors;
}

Written Step::written() const {
    return {output_.download(), lse_.download(), cache_.download(), scale_.download()};
}

std::vector<std::byte> Step::rows_of(const Written& written, std::int64_t b) const {
    const auto output = rows_in(output_, written.output, b), lse = rows_in(lse_, written.lse, b);
    std::vector<std::byte> rows(output.begin(), output.end());
    rows.insert(rows.end(), lse.begin(), lse.end());
    return rows;
}

std::string Step::judge_outputs(const Written& written, const Dense& key, const Dense& value) const {
    const Attended expected = oracle_attend(problem_, query_.host(), key, value, {});
    const double tolerance = spec_.t1 == KVJIT_F16 ? kF16Tolerance : kF32Tolerance;
    const std::string output = compare("attn_output", written.output, spec_.t1, expected.output, tolerance, 0);
    return !output.empty() ? output : compare("lse", written.lse, KVJIT_F32, expected.lse, tolerance, 1);
}

std::string Step::judge(const Written& written) const {
    std::vector<std::byte> cache_bytes = cache_.bytes(), scale_bytes = scale_.bytes();
    Strided cache = cache_.host(), scale = scale_.host();
    cache.data = cache_bytes.data();
    scale.data = scale_bytes.data();
    oracle_store(problem_, key_.host(), value_.host(), cache, scale);
    if (auto differs = compare_bytes("cache", written.cache, cache_bytes); !differs.empty()) return differs;
    if (auto differs = compare_bytes("scale", written.scale, scale_bytes); !differs.empty()) return differs;
    return judge_outputs(written, oracle_load(problem_, 0, cache, scale), oracle_load(problem_, 1, cache, scale));
}

}  // namespace kvjit::test
