// A call that is recorded and replayed gives the same bits, and what the oracle says.
#include <cstring>
#include <string>

#include "handles.h"
#include "recording/judge.h"
#include "recording/oracle.h"
#include "support.h"

namespace kvjit::test {
namespace {

const char* const kSpecs[] = {
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f32,cache_mode=offset",
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f16,cache_mode=token_table,layout=LT2HD",
    "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,cache_mode=page_table,page_size=8,layout=L2HTD,quant_bit=8",
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f32,cache_mode=page_table,page_size=8,quant_bit=4,quant_group="
    "16,"
    "t3=f16",
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=bf16,cache_mode=block_table,page_size=4,layout=N2LTHD,"
    "index_type=i32,starts_type=i32",
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f32,t2=bf16,cache_mode=block_table,page_size=8,layout=NTHD",
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f16,cache_mode=block_table,page_size=8,layout=NTHD,quant_bit=8",
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f32,cache_mode=block_pointers,page_size=8,layout=2LTHD",
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f32,cache_mode=block_pointers,page_size=8,layout=2LTHD,quant_"
    "bit=8",
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f32,cache_mode=sequence_table,layout=NL2THD",
    "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,is_alibi=1,cache_mode=page_table,page_size=8",
    "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,is_causal=1,has_window=1,has_soft_cap=1,has_sinks=1,"
    "cache_mode=page_table,page_size=4",
    "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f16,attn_mask=2,cache_mode=page_table,page_size=8",
    "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,attn_mask=3,cache_mode=offset",
    "op=KeyValueCache,head_dim=64,t1=f32,cache_mode=block_table,page_size=8,layout=NHDTd8",
    "op=KeyValueCache,head_dim=64,t1=f16,quant_bit=8,cache_mode=page_table,page_size=8",
    "op=KeyValueCache,head_dim=64,t1=bf16,quant_bit=4,cache_mode=token_table",
    "op=MultiHeadAttention,head_dim=64,group=4,t1=f32,is_causal=1",
    "op=MultiHeadAttention,head_dim=64,group=2,t1=f16,attn_mask=2,has_sinks=1",
    "op=Merge,head_dim=64,t1=f32",
    "op=Merge,head_dim=64,t1=bf16,has_sinks=1",
};

void set_rules(ApiCall& call) {
    if (call.spec.has_window) call.batch.window_left = 6, call.batch.window_right = 2;
    if (call.spec.has_soft_cap) call.batch.soft_cap = 3;
    call.batch.softmax_scale = 0.11F;
    call.batch.decoding_batches = 1;
    if (call.spec.op == KVJIT_OP_KEY_VALUE_CACHE) call.batch.num_repeat = 1;
}

class Replayer {
public:
    explicit Replayer(const char* target)
        : engine_(*tool::open_engine({})), target_(*tool::open_target(target)), on_cuda_(tool::is_cuda(target)) {}
    tool::Results run(const tool::Recording& call) {
        auto results = tool::run_recording({engine_.get(), target_.get(), 1, on_cuda_}, call);
        if (!results) FAIL(results.error().why);
        return *std::move(results);
    }

private:
    tool::Engine engine_;
    tool::Target target_;
    bool on_cuda_;
};

void expect(const tool::Verdict& verdict) {
    CHECK_MESSAGE(verdict.pass, verdict.detail);
}

/// As recorded to the last bit, as the oracle has it, and so on another target.
void check_recording(const tool::Recording& call) {
    const tool::Results recorded = tool::recorded_results(call, call.got);
    REQUIRE(!recorded.empty());
    expect(tool::judge(call, Replayer("host").run(call), recorded, true));
    const auto computed = tool::compute_results(call);
    REQUIRE_MESSAGE(computed, computed.error());
    expect(tool::judge(call, recorded, *computed, false));
    for (const auto& [name, tensor] : recorded) CHECK_MESSAGE(computed->contains(name), name);
    expect(tool::judge(call, Replayer("cuda-emulated").run(call), recorded, false));
}

TEST_CASE("every operator, cache mode, kind of layout, type and rule") {
    for (const char* spec : kSpecs) {
        for (const std::int64_t spare : {0, 1000}) {  // slots are kept, or numbered anew
            CAPTURE(std::string(spec));
            CAPTURE(spare);
            RecordingEngine engine;
            ApiCall call = scattered_call(spec, 20 + static_cast<std::uint64_t>(spare), 1, spare);
            set_rules(call);
            engine.run(call);
            CHECK(engine.heard().warnings.empty());
            for (const std::string& warning : engine.heard().warnings) MESSAGE(warning);
            REQUIRE(engine.files().size() == 1);
            check_recording(read(engine.files()[0]));
        }
    }
}

TEST_CASE("one layer of several is recorded") {
    for (const char* layout : {"TL2HD", "LT2HD", "2LHTD"}) {
        CAPTURE(layout);
        RecordingEngine engine;
        const ApiCall call = scattered_call(
            std::string(
                "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,cache_mode=page_table,page_size=8,layout=") +
                layout,
            5, 3);
        engine.run(call, {}, 2);
        REQUIRE(engine.files().size() == 1);
        check_recording(read(engine.files()[0]));
    }
}

TEST_CASE("what an emulated GPU gave, its index arrays checked by itself or by the host") {
    for (const bool mirrored : {false, true}) {
        for (const char* spec :
             {"op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f16,cache_mode=block_table,page_size=16,layout=N2LTHD",
              "op=KeyValueCache,head_dim=64,t1=f16,quant_bit=8,cache_mode=page_table,page_size=8"}) {
            CAPTURE(std::string(spec));
            RecordingEngine engine;
            ApiCall call = scattered_call(spec, 11);
            call.batch.max_seqlen = 3;
            call.batch.max_kvlen = 40;
            PlanOptions options;
            if (mirrored) options.host_batch = &call.batch;
            engine.run(call, engine.engine().kernel(call.spec, Target::cuda_emulated().value()).value(), options);
            for (const std::string& warning : engine.heard().warnings) MESSAGE(warning);
            REQUIRE(engine.files().size() == 1);
            const tool::Recording recording = read(engine.files()[0]);
            const tool::Results recorded = tool::recorded_results(recording, recording.got);
            expect(tool::judge(recording, Replayer("cuda-emulated").run(recording), recorded, true));
            expect(tool::judge(recording, Replayer("host").run(recording), recorded, false));
            expect(tool::judge(recording, recorded, *tool::compute_results(recording), false));
        }
    }
}

TEST_CASE("splits of a number of keys are replayed so") {
    ApiCall call(
        {parse_spec("op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f16,cache_mode=block_table,page_size=16,"
                    "layout=N2LTHD"),
         {8, 1},
         {700, 500}});
    Rng rng(12);
    draw_inputs(call.tensors, rng);
    PlanOptions options;
    options.host_batch = &call.batch;
    const auto record = [&](std::int64_t decode, std::int64_t prefill) {
        options.split_keys = decode;
        options.prefill_split_keys = prefill;
        RecordingEngine engine;
        engine.run(call, engine.engine().kernel(call.spec, Target::cuda_emulated().value()).value(), options);
        return read(engine.files().at(0));
    };
    const tool::Recording fixed = record(128, 64), whole = record(128, 0);
    CHECK(fixed.split_keys == 128);
    CHECK(fixed.prefill_split_keys == 64);
    CHECK(whole.prefill_split_keys == 0);
    for (const tool::Recording* recording : {&fixed, &whole}) {
        const tool::Results recorded = tool::recorded_results(*recording, recording->got);
        expect(tool::judge(*recording, Replayer("cuda-emulated").run(*recording), recorded, true));
        expect(tool::judge(*recording, Replayer("host").run(*recording), recorded, false));
    }
    // So the number is what the replay went by.
    CHECK(!tool::judge(whole, tool::recorded_results(fixed, fixed.got), tool::recorded_results(whole, whole.got), true)
               .pass);
}

TEST_CASE("entries before a window, and those that no key needs, may be anything") {
    for (const std::int64_t spare : {0, 1000}) {
        for (const std::int64_t stale : {std::int64_t{-1}, std::int64_t{1} << 40}) {
            RecordingEngine engine;
            ApiCall call = scattered_call(
                "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,is_causal=1,has_window=1,cache_mode=block_table,"
                "page_size=4,layout=N2THD",
                6, 1, spare);
            call.batch.window_left = 6;
            call.batch.window_right = -1;
            for (std::size_t page = 0; page < 7; ++page) call.table[page] = stale;  // of sequence 0, with 37 keys
            engine.run(call);
            for (const std::string& warning : engine.heard().warnings) MESSAGE(warning);
            REQUIRE(engine.files().size() == 1);
            check_recording(read(engine.files()[0]));
        }
    }
}

TEST_CASE("what stores nothing, and slots that the caller chose") {
    const char* spec =
        "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,cache_mode=block_table,page_size=4,layout=N2THD";
    RecordingEngine engine;
    ApiCall reading = scattered_call(spec, 7);
    reading.tensors.current_key = reading.tensors.current_value = Tensor();
    PlanOptions options;
    options.stores_nothing = 1;
    engine.run(reading, options);
    ApiCall chosen = scattered_call(spec, 8);
    chosen.set_slots({chosen.batch.num_blocks * 4 - 1, -1, 3, 2, 4000}, {5});
    engine.run(chosen);
    REQUIRE(engine.files().size() == 2);
    for (const std::string& file : engine.files()) check_recording(read(file));
    CHECK(read(engine.files()[0]).stores_nothing);
    CHECK(!read(engine.files()[0]).got.contains("cache"));
    CHECK(read(engine.files()[1]).has("store_slots"));
}

TEST_CASE("rows that lie apart are replayed so") {
    RecordingEngine engine;
    ApiCall call = scattered_call("op=MultiHeadAttention,head_dim=64,group=2,t1=f32", 9);
    kvjit_tensor& query = call.tensors.query;
    const kvjit_tensor wide = call.tensor(KVJIT_F32, {query.shape[0], query.shape[1] + 4, 64});
    Rng rng(3);
    draw(wide, rng);
    query.data = wide.data;
    query.strides[0] = wide.strides[0];
    engine.run(call);
    REQUIRE(engine.files().size() == 1);
    const tool::Recording recording = read(engine.files()[0]);
    CHECK(recording.inputs.at("query").strides == std::vector<std::int64_t>{query.strides[0], query.strides[1], 1});
    check_recording(recording);
}

TEST_CASE("what differs is told by the names of its axes") {
    RecordingEngine engine;
    engine.run(scattered_call("op=MultiHeadAttention,head_dim=64,group=2,t1=f32", 9));
    tool::Recording call = read(engine.files().at(0));
    const std::int64_t at = (2 * 4 + 3) * 64 + 17;  // of 4 heads: token 2, head 3, d 17
    const float wrong = 100;
    std::memcpy(call.got["attn_output"].bytes().data() + at * 4, &wrong, sizeof wrong);
    const tool::Verdict verdict = tool::judge(call, call.got, *tool::compute_results(call), false);
    CHECK(!verdict.pass);
    CHECK_MESSAGE(
        verdict.detail.starts_with("attn_output[token 2 (sequence 1, its token 1), head 3, d 17] is 100, expected "),
        verdict.detail);
    CHECK_MESSAGE(verdict.detail.ends_with("1e-05 is allowed; 1 of 1280 are off by more: token 2, head 3, d 17"),
                  verdict.detail);
}

}  // namespace
}  // namespace kvjit::test
