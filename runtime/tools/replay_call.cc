#include "replay_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "handles.h"

namespace kvjit::tool {
namespace {

/// The type in which MultiHeadAttention gets the recorded key and value. Where rounding them to t1 would change them (a
/// quantised or float32 cache with t1 = f16), that is float32: the recorded result belongs to the unrounded ones, and
/// where scores are large, keys rounded to float16 move a correct result by more than the tolerance.
kvjit_dtype attention_type(const RecordedCall& call) {
    const bool exact = call.spec.quant_bit == 0 && (call.spec.t2 == KVJIT_AUTO || call.spec.t2 == call.spec.t1);
    return exact ? call.t1() : KVJIT_F32;
}

constexpr std::byte kUnwritten{0xff};  // NaN in both float types

Tensor output_like(const Tensor& expected, kvjit_dtype dtype) {
    return {dtype, {expected.shape().begin(), expected.shape().end()}, kUnwritten};
}

Tensor index_tensor(const std::vector<std::int64_t>& indices) {
    Tensor tensor(KVJIT_I64, {static_cast<std::int64_t>(indices.size())}, std::byte{0});
    std::memcpy(tensor.bytes().data(), indices.data(), tensor.bytes().size());
    return tensor;
}

/// The call's index arrays where kernels can read them.
struct Starts {
    Tensor seqstarts, kvstarts, start_pos;

    explicit Starts(const RecordedCall& call)
        : seqstarts(index_tensor(call.seqstarts)),
          kvstarts(index_tensor(call.kvstarts)),
          start_pos(index_tensor(call.start_pos)) {}
};

const std::int64_t* data_of(const Tensor& indices) {
    return static_cast<const std::int64_t*>(indices.view().data);
}

kvjit_batch call_batch(const RecordedCall& call, const Starts& starts, kvjit_op op) {
    kvjit_batch batch = call.score;
    batch.batch_size = call.batch_size();
    batch.num_heads = call.num_heads;
    batch.num_kv_heads = call.num_kv_heads;
    batch.max_seqlen = call.max_seqlen;
    batch.max_kvlen = call.max_kvlen;
    batch.seqstarts = data_of(starts.seqstarts);
    batch.kvstarts = data_of(starts.kvstarts);
    batch.decoding_batches = call.decoding_batches;
    if (op == KVJIT_OP_MULTI_HEAD_ATTENTION) return batch;
    batch.num_layers = call.num_layers;
    batch.start_pos = data_of(starts.start_pos);
    batch.cachestarts = call.cachestarts.view();
    if (call.spec.cache_mode == KVJIT_BLOCK_TABLE) {
        batch.num_blocks = call.cache_extent('N');
    } else {
        batch.max_tokens = call.cache_extent('T');
    }
    if (op == KVJIT_OP_KEY_VALUE_CACHE) batch.num_repeat = call.num_repeat;
    return batch;
}

RunResult<void> run(const Machine& machine, const RecordedCall& call, kvjit_op op, const kvjit_tensors& tensors) {
    const auto spec = op_spec(call, op);
    if (!spec) return not_run(spec.error());
    const auto kernel = open_kernel(machine.engine, *spec, machine.target);
    if (!kernel) return not_run(kernel.error());
    const Starts starts(call);
    const kvjit_batch batch = call_batch(call, starts, op);
    const auto plan = make_plan(kernel->get(), batch, plan_options(machine, batch));
    if (!plan) return not_run(plan.error());
    const std::int64_t layer = op == KVJIT_OP_MULTI_HEAD_ATTENTION ? 0 : call.layer_idx;
    if (auto started = start_plan(plan->get(), tensors, layer); !started) return started;
    return finish_plan(plan->get());
}

/// What both attention operators write.
struct AttentionOutputs {
    Tensor attn_output, lse;

    AttentionOutputs(const RecordedCall& call, kvjit_dtype type)
        : attn_output(output_like(call.out_attn_output, type)), lse(output_like(call.out_lse, KVJIT_F32)) {}

    void bind(kvjit_tensors& tensors) const {
        tensors.attn_output = attn_output.view();
        tensors.lse = lse.view();
    }
    Verdict compare(const RecordedCall& call) const {
        const double allowed = tolerance(call.t1());
        Verdict verdict = compare_closely("out.attn_output", attn_output, call.out_attn_output, allowed);
        verdict.join(compare_closely("out.lse", lse, call.out_lse, allowed, 1));
        return verdict;
    }
};

/// The cache and scales that both cache operators change.
struct CacheOutputs {
    Tensor cache, scale;

    explicit CacheOutputs(const RecordedCall& call) : cache(call.cache.clone()), scale(call.scale.clone()) {}

    void bind(kvjit_tensors& tensors) const {
        tensors.cache = cache.view();
        tensors.scale = scale.view();
    }
    Verdict compare(const RecordedCall& call) const {
        Verdict verdict = compare_bytes("out.cache", cache, call.out_cache);
        if (scale.present()) verdict.join(compare_exactly("out.scale", scale, call.out_scale));
        return verdict;
    }
};

kvjit_tensors call_tensors() {
    kvjit_tensors tensors;
    kvjit_tensors_init(&tensors);
    return tensors;
}

RunResult<Verdict> replay_cache_attention(const Machine& machine, const RecordedCall& call) {
    const CacheOutputs stored(call);
    const AttentionOutputs attended(call, call.t1());
    kvjit_tensors tensors = call_tensors();
    tensors.query = call.query.view();
    tensors.current_key = call.current_key.view();
    tensors.current_value = call.current_value.view();
    tensors.attn_mask = call.attn_mask.view();
    tensors.sinks = call.sinks.view();
    stored.bind(tensors);
    attended.bind(tensors);
    if (auto ran = run(machine, call, KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION, tensors); !ran)
        return std::unexpected(ran.error());
    Verdict verdict = attended.compare(call);
    verdict.join(stored.compare(call));
    return verdict;
}

RunResult<Verdict> replay_key_value_cache(const Machine& machine, const RecordedCall& call) {
    const CacheOutputs stored(call);
    const Tensor key = output_like(call.out_key, call.t1());
    const Tensor value = output_like(call.out_value, call.t1());
    kvjit_tensors tensors = call_tensors();
    tensors.current_key = call.current_key.view();
    tensors.current_value = call.current_value.view();
    tensors.key = key.view();
    tensors.value = value.view();
    stored.bind(tensors);
    if (auto ran = run(machine, call, KVJIT_OP_KEY_VALUE_CACHE, tensors); !ran) return std::unexpected(ran.error());
    Verdict verdict = stored.compare(call);
    verdict.join(compare_exactly("out.key", key, converted(call.out_key, call.t1())));
    verdict.join(compare_exactly("out.value", value, converted(call.out_value, call.t1())));
    return verdict;
}

/// Of num_repeat copies of a kv head, attention reads the first.
kvjit_tensor without_repeats(const Tensor& tensor, std::int64_t num_repeat) {
    kvjit_tensor view = tensor.view();
    view.shape[1] /= num_repeat;
    view.strides[1] *= num_repeat;
    return view;
}

RunResult<Verdict> replay_attention(const Machine& machine, const RecordedCall& call) {
    const kvjit_dtype type = attention_type(call);
    const AttentionOutputs attended(call, type);
    const Tensor query = converted(call.query, type);
    const Tensor key = converted(call.out_key, type);
    const Tensor value = converted(call.out_value, type);
    const Tensor mask = converted(call.attn_mask, type);
    kvjit_tensors tensors = call_tensors();
    tensors.query = query.view();
    tensors.key = without_repeats(key, call.num_repeat);
    tensors.value = without_repeats(value, call.num_repeat);
    tensors.attn_mask = mask.view();
    tensors.sinks = call.sinks.view();
    attended.bind(tensors);
    if (auto ran = run(machine, call, KVJIT_OP_MULTI_HEAD_ATTENTION, tensors); !ran)
        return std::unexpected(ran.error());
    return attended.compare(call);
}

}  // namespace

Result<kvjit_spec> op_spec(const RecordedCall& call, kvjit_op op) {
    kvjit_spec spec = call.spec;
    if (op == KVJIT_OP_KEY_VALUE_CACHE) spec.t1 = call.t1();
    if (op == KVJIT_OP_MULTI_HEAD_ATTENTION) spec.t1 = attention_type(call);
    kvjit_error error;
    kvjit_error_init(&error);
    if (kvjit_spec_for_op(&spec, op, &spec, &error) != KVJIT_OK) return fail(error_text(error));
    return spec;
}

RunResult<Verdict> replay_op(const Machine& machine, const RecordedCall& call, kvjit_op op) {
    switch (op) {
        case KVJIT_OP_KEY_VALUE_CACHE:
            return replay_key_value_cache(machine, call);
        case KVJIT_OP_MULTI_HEAD_ATTENTION:
            return replay_attention(machine, call);
        case KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION:
            return replay_cache_attention(machine, call);
        case KVJIT_OP_MERGE:
        case KVJIT_OP_RELAYOUT:
            break;
    }
    return not_run("a recorded call has no such operator");
}

}  // namespace kvjit::tool
