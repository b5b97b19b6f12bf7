#include "recording/oracle.h"

#include <algorithm>
#include <cstring>

#include "available_memory.h"
#include "oracle/oracle.h"
#include "record/case_fields.h"

namespace kvjit::tool {
namespace {

using oracle::Attended;
using oracle::CacheMemory;
using oracle::Dense;
using oracle::Problem;
using oracle::Strided;

std::vector<std::int64_t> numbers_of(const Recording& call, const std::string& name) {
    const Tensor& tensor = call.input(name);
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < tensor.size(); ++i) numbers.push_back(tensor.integer(i));
    return numbers;
}
std::vector<float> floats_of(const Recording& call, const std::string& name) {
    const Tensor& tensor = call.input(name);
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < tensor.size(); ++i) numbers.push_back(static_cast<float>(tensor.number(i)));
    return numbers;
}

/// m of sequence b.
std::int64_t keys_of(const Recording& call, std::int64_t b) {
    if (call.has("kvstarts")) return call.index("kvstarts", b + 1) - call.index("kvstarts", b);
    if (call.has("kvlens")) return call.index("kvlens", b);
    if (!call.has("last_page_len")) return 0;  // Merge
    const std::int64_t pages = call.index("rowstarts", b + 1) - call.index("rowstarts", b);
    return pages == 0 ? 0 : (pages - 1) * call.spec.page_size + call.index("last_page_len", b);
}

void set_heads(const Recording& call, Problem& problem) {
    const kvjit_batch& numbers = call.numbers;
    const std::int64_t heads = numbers.num_heads, kv_heads = numbers.num_kv_heads;
    const bool attends = call.op() != KVJIT_OP_KEY_VALUE_CACHE;
    problem.num_kv_heads = kv_heads != 0 ? kv_heads : attends ? heads / call.spec.group : heads;
    problem.num_heads = attends ? (heads != 0 ? heads : kv_heads * call.spec.group) : problem.num_kv_heads;
}

Problem problem_of(const Recording& call) {
    Problem problem;
    problem.spec = call.spec;
    set_heads(call, problem);
    const kvjit_batch& numbers = call.numbers;
    problem.decoding_batches = numbers.decoding_batches;
    problem.num_repeat = numbers.num_repeat;
    problem.softmax_scale = numbers.softmax_scale;
    problem.window_left = numbers.window_left;
    problem.window_right = numbers.window_right;
    problem.soft_cap = numbers.soft_cap;
    problem.loads_for_attention = call.op() == KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION;
    problem.seqstarts = numbers_of(call, "seqstarts");
    problem.kvstarts = {0};
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        const std::int64_t keys = keys_of(call, b);
        problem.kvstarts.push_back(problem.kvstarts.back() + keys);
        problem.start_pos.push_back(keys - problem.new_tokens(b));
    }
    problem.cachestarts = numbers_of(call, "cachestarts");
    const auto columns = call.input("cachestarts").shape();
    problem.table_columns = columns.size() == 2 ? columns[1] : 0;
    problem.rowstarts = numbers_of(call, "rowstarts");
    problem.row_index = numbers_of(call, "row_index");
    problem.store_slots = numbers_of(call, "store_slots");
    const bool blocks = call.spec.cache_mode == KVJIT_BLOCK_TABLE;
    problem.block_tokens = blocks                                         ? call.spec.page_size
                           : call.spec.cache_mode == KVJIT_SEQUENCE_TABLE ? numbers.max_tokens
                                                                          : 0;
    problem.slopes = floats_of(call, "alibi_slopes");
    problem.sinks = floats_of(call, "sinks");
    return problem;
}

/// A view of a dense tensor.
Strided strided(const Tensor& tensor) {
    if (!tensor.present()) return {};
    Strided view;
    view.data = const_cast<std::byte*>(tensor.bytes().data());
    view.dtype = tensor.dtype();
    view.shape = {tensor.shape().begin(), tensor.shape().end()};
    view.strides.resize(view.shape.size());
    std::int64_t stride = 1;
    for (std::size_t axis = view.shape.size(); axis-- > 0;) {
        view.strides[axis] = stride;
        stride *= view.shape[axis];
    }
    return view;
}

/// One of the blocks in a tensor of them.
Strided block(const Tensor& blocks, std::int64_t number) {
    Strided view = strided(blocks);
    view.data += number * view.strides[0] * static_cast<std::int64_t>(element_bytes(blocks.dtype()));
    view.shape.erase(view.shape.begin());
    view.strides.erase(view.strides.begin());
    return view;
}

/// Copies of the cache's tensors, which the oracle writes to.
class Memory {
public:
    explicit Memory(const Recording& call) : call_(call) {
        for (const char* name :
             {"cache", "scale", "key_cache", "value_cache", "key_scale", "value_scale", "blocks", "scale_blocks"}) {
            if (call.has(name)) tensors_[name] = call.input(name).clone();
        }
    }
    CacheMemory codes() const {
        if (has("blocks")) return of_blocks();
        return has("cache") ? CacheMemory(at("cache")) : pair("key_cache", "value_cache");
    }
    CacheMemory scales() const {
        if (has("scale_blocks")) return of_scale_blocks();
        return has("scale") ? CacheMemory(at("scale")) : pair("key_scale", "value_scale");
    }
    Results take() && { return std::move(tensors_); }

private:
    bool has(const std::string& name) const { return tensors_.contains(name); }
    Strided at(const std::string& name) const { return strided(tensors_.at(name)); }
    CacheMemory pair(const std::string& key, const std::string& value) const {
        if (!has(key) || !has(value)) return {};
        return CacheMemory(std::vector{at(key), at(value)});
    }
    CacheMemory of_blocks() const {
        std::vector<Strided> all;
        const Tensor& blocks = tensors_.at("blocks");
        for (std::int64_t i = 0; i < blocks.shape()[0]; ++i) all.push_back(block(blocks, i));
        return CacheMemory(std::move(all));
    }
    /// By the numbers of their codes' blocks, which the oracle's table has.
    CacheMemory of_scale_blocks() const {
        std::vector<Strided> all(static_cast<std::size_t>(tensors_.at("blocks").shape()[0]));
        const Tensor &codes = call_.input("cachestarts"), &scales = call_.input("scalestarts");
        for (std::int64_t i = 0; i < codes.size(); ++i) {
            const std::int64_t number = codes.integer(i);
            if (number < 0 || number >= std::ssize(all) || scales.integer(i) < 0) continue;
            all[static_cast<std::size_t>(number)] = block(tensors_.at("scale_blocks"), scales.integer(i));
        }
        return CacheMemory(std::move(all));
    }

    const Recording& call_;
    Results tensors_;
};

template <class T>
Tensor float_tensor(const std::vector<T>& numbers, std::vector<std::int64_t> shape) {
    Tensor tensor(KVJIT_F32, std::move(shape), std::byte{0});
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto number = static_cast<float>(numbers[i]);
        std::memcpy(tensor.bytes().data() + i * sizeof number, &number, sizeof number);
    }
    return tensor;
}

/// (K, Hkv, D) with each head num_repeat times.
Tensor repeated(const Problem& problem, const Dense& rows) {
    const auto width = static_cast<std::size_t>(problem.spec.head_dim);
    std::vector<float> all;
    for (std::size_t row = 0; row * width < rows.size(); ++row) {
        for (std::int64_t r = 0; r < problem.num_repeat; ++r) {
            all.insert(all.end(), rows.begin() + static_cast<std::ptrdiff_t>(row * width),
                       rows.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
        }
    }
    return float_tensor(all,
                        {problem.kvstarts.back(), problem.num_kv_heads * problem.num_repeat, problem.spec.head_dim});
}

void put_attended(const Problem& problem, const Attended& attended, Results& results) {
    const std::int64_t rows = problem.seqstarts.back();
    results["attn_output"] = float_tensor(attended.output, {rows, problem.num_heads, problem.spec.head_dim});
    results["lse"] = float_tensor(attended.lse, {rows, problem.num_heads});
}

Attended merged(const Recording& call, const Problem& problem) {
    const Tensor &output = call.input("partial_output"), &lse = call.input("partial_lse");
    std::vector<Attended> parts(static_cast<std::size_t>(output.shape()[0]));
    const auto take = [](const Tensor& from, std::size_t part, std::size_t parts_in_all) {
        std::vector<double> numbers;
        const std::int64_t each = from.size() / static_cast<std::int64_t>(parts_in_all);
        for (std::int64_t i = 0; i < each; ++i) {
            numbers.push_back(from.number(static_cast<std::int64_t>(part) * each + i));
        }
        return numbers;
    };
    for (std::size_t p = 0; p < parts.size(); ++p) {
        parts[p] = {take(output, p, parts.size()), take(lse, p, parts.size())};
    }
    return oracle::oracle_merge(parts, problem.spec.head_dim, problem.sinks);
}

/// Bytes of keys and values in float32, and as much again for what is made of them.
Result<void> check_memory(const Problem& problem) {
    const __int128 bytes = static_cast<__int128>(problem.kvstarts.back()) * problem.num_kv_heads * problem.num_repeat *
                           problem.spec.head_dim * 16;
    if (bytes <= static_cast<__int128>(available_memory())) return {};
    return fail("the oracle would need " + std::to_string(static_cast<double>(bytes)) + " bytes for " +
                std::to_string(problem.kvstarts.back()) + " keys; available are " + std::to_string(available_memory()));
}

}  // namespace

Result<Results> compute_results(const Recording& call) {
    const Problem problem = problem_of(call);
    if (auto fits = check_memory(problem); !fits) return fail(fits.error());
    Results results;
    if (call.op() == KVJIT_OP_MERGE) {
        put_attended(problem, merged(call, problem), results);
        return results;
    }
    const Strided query = strided(call.input("query")), mask = strided(call.input("attn_mask"));
    if (call.op() == KVJIT_OP_MULTI_HEAD_ATTENTION) {
        const Dense key = oracle_dense(problem, strided(call.input("key")));
        const Dense value = oracle_dense(problem, strided(call.input("value")));
        put_attended(problem, oracle_attend(problem, query, key, value, mask), results);
        return results;
    }
    Memory memory(call);
    const CacheMemory codes = memory.codes(), scales = memory.scales();
    if (call.stores()) {
        oracle_store(problem, strided(call.input("current_key")), strided(call.input("current_value")), codes, scales);
    }
    const Dense key = oracle_load(problem, 0, codes, scales), value = oracle_load(problem, 1, codes, scales);
    results = std::move(memory).take();
    if (call.op() == KVJIT_OP_KEY_VALUE_CACHE) {
        results["key"] = repeated(problem, key);
        results["value"] = repeated(problem, value);
    } else {
        put_attended(problem, oracle_attend(problem, query, key, value, mask), results);
    }
    return results;
}

}  // namespace kvjit::tool
