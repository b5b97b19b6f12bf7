// What of a step kvjit sees, and whether what it wrote is right.
#include <algorithm>
#include <cmath>

#include "gpu/step.h"

namespace kvjit::test {
namespace {

constexpr double kF32Tolerance = 1e-5, kF16Tolerance = 2e-3;  // docs/semantics.md, section 9
constexpr std::int64_t kLayer = 1;

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

Strided strided(const kvjit_tensor& tensor) {
    return {static_cast<std::byte*>(tensor.data), tensor.rank == 0 ? KVJIT_AUTO : tensor.dtype,
            Numbers(tensor.shape, tensor.shape + tensor.rank), Numbers(tensor.strides, tensor.strides + tensor.rank)};
}

std::vector<std::byte> copy_of(const kvjit_tensor& tensor) {
    return {bytes_of(tensor).begin(), bytes_of(tensor).end()};
}

}  // namespace

Problem Step::problem() const {
    Problem problem;
    problem.spec = call_.spec;
    problem.num_heads = call_.batch.num_heads;
    problem.num_kv_heads = call_.batch.num_kv_heads;
    problem.num_layers = call_.batch.num_layers;
    problem.layer = kLayer;
    problem.seqstarts = call_.seqstarts;
    problem.kvstarts = call_.kvstarts;
    problem.start_pos = call_.start_pos;
    problem.cachestarts = call_.table;
    problem.table_columns = call_.batch.cachestarts.shape[1];
    return problem;
}

std::size_t Step::piece_of(const kvjit_tensor& tensor) const {
    const auto data = [](std::span<std::byte> piece) -> const void* { return piece.data(); };
    return static_cast<std::size_t>(std::ranges::find(call_.pieces(), tensor.data, data) - call_.pieces().begin());
}

kvjit_tensors Step::tensors() const {
    kvjit_tensors tensors = call_.tensors;
    for (const auto member :
         {&kvjit_tensors::query, &kvjit_tensors::current_key, &kvjit_tensors::current_value, &kvjit_tensors::cache,
          &kvjit_tensors::scale, &kvjit_tensors::attn_output, &kvjit_tensors::lse}) {
        kvjit_tensor& tensor = tensors.*member;
        if (tensor.rank != 0) tensor.data = tensors_.at(piece_of(tensor));
    }
    return tensors;
}

std::vector<std::byte> Step::download(const kvjit_tensor& tensor) const {
    return tensor.rank == 0 ? std::vector<std::byte>() : tensors_.download(piece_of(tensor));
}

Written Step::written() const {
    const kvjit_tensors& tensors = call_.tensors;
    return {download(tensors.attn_output), download(tensors.lse), download(tensors.cache), download(tensors.scale)};
}

std::vector<std::byte> Step::rows_of(const Written& written, std::int64_t b) const {
    const auto output = rows_in(call_.tensors.attn_output, written.output, b),
               lse = rows_in(call_.tensors.lse, written.lse, b);
    std::vector<std::byte> rows(output.begin(), output.end());
    rows.insert(rows.end(), lse.begin(), lse.end());
    return rows;
}

std::string Step::judge_outputs(const Written& written, const Dense& key, const Dense& value) const {
    const Attended expected = oracle_attend(problem(), strided(call_.tensors.query), key, value, {});
    const double tolerance = spec().t1 == KVJIT_F16 ? kF16Tolerance : kF32Tolerance;
    const std::string output = compare("attn_output", written.output, spec().t1, expected.output, tolerance, 0);
    return !output.empty() ? output : compare("lse", written.lse, KVJIT_F32, expected.lse, tolerance, 1);
}

std::string Step::judge(const Written& written) const {
    const kvjit_tensors& tensors = call_.tensors;
    std::vector<std::byte> cache_bytes = copy_of(tensors.cache), scale_bytes = copy_of(tensors.scale);
    Strided cache = strided(tensors.cache), scale = strided(tensors.scale);
    cache.data = cache_bytes.data();
    scale.data = scale_bytes.data();
    const Problem problem = this->problem();
    oracle_store(problem, strided(tensors.current_key), strided(tensors.current_value), cache, scale);
    if (auto differs = compare_bytes("cache", written.cache, cache_bytes); !differs.empty()) return differs;
    if (auto differs = compare_bytes("scale", written.scale, scale_bytes); !differs.empty()) return differs;
    return judge_outputs(written, oracle_load(problem, 0, cache, scale), oracle_load(problem, 1, cache, scale));
}

}  // namespace kvjit::test
