// What a recording holds, and which calls become one.
#include <cstring>
#include <stdexcept>
#include <thread>

#include "support.h"

namespace kvjit::test {
namespace {

const char* const kPaged =
    "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,cache_mode=block_table,page_size=4,layout=N2LTHD";

std::vector<std::int64_t> numbers(const tool::Recording& call, const std::string& name) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < call.input(name).size(); ++i) all.push_back(call.index(name, i));
    return all;
}

TEST_CASE("a call's results are those without recording, bit for bit") {
    for (const char* record : {"", "every=1"}) {
        RecordingEngine recording(record);
        const auto plain = Engine::create().value();
        const ApiCall one = scattered_call(kPaged, 3), two = scattered_call(kPaged, 3);
        recording.run(one);
        plain.kernel(two.spec).value().plan(two.batch).value().run(two.tensors).value();
        CHECK(one.snapshot() == two.snapshot());
        CHECK(recording.files().size() == 1);
    }
}

TEST_CASE("only blocks that the call needs, in ascending order, with the caller's table as a remark") {
    RecordingEngine engine;
    const ApiCall call = scattered_call(kPaged, 4);
    engine.run(call);
    const auto file = tool::SafetensorsFile::open(engine.files().at(0));
    CHECK(file->metadata().at("was.renumbered") == "1");
    CHECK(file->metadata().at("was.num_blocks") == std::to_string(call.batch.num_blocks));
    CHECK(file->tensors().contains("was.cachestarts"));
    const tool::Recording recording = read(engine.files()[0]);
    const std::int64_t needed = 10 + 5 + 2 + 1;  // pages of 37, 20, 5 and 1 keys
    CHECK(recording.numbers.num_blocks == needed);
    CHECK(recording.input("cache").shape()[0] == needed);
    const std::vector<std::int64_t> table = numbers(recording, "cachestarts");
    REQUIRE(table.size() == call.table.size());
    for (std::size_t i = 0; i < table.size(); ++i) {
        CHECK((table[i] == -1) == (call.table[i] == -1));
        for (std::size_t j = 0; j < i; ++j) {
            if (table[i] >= 0 && table[j] >= 0) CHECK((table[i] < table[j]) == (call.table[i] < call.table[j]));
        }
    }
    CHECK(numbers(recording, "seqstarts") == call.seqstarts);
    CHECK(numbers(recording, "kvstarts") == call.kvstarts);
}

TEST_CASE("a cache that is mostly needed keeps its numbers; what is not needed is 0") {
    RecordingEngine engine;
    ApiCall call(even_shape(kPaged, 3, 1, 21));
    Rng rng(4);
    call.place_tokens(&rng, 3);
    static_cast<CallTensors&>(call) = CallTensors(call, {call.seqstarts.back(), call.kvstarts.back()});
    draw_inputs(call.tensors, rng);
    for (std::byte& byte : bytes_of(call.tensors.cache)) byte = byte == std::byte{0} ? std::byte{1} : byte;
    engine.run(call);
    const tool::Recording recording = read(engine.files().at(0));
    CHECK(numbers(recording, "cachestarts") == call.table);
    const tool::Tensor& cache = recording.input("cache");
    CHECK(cache.shape()[0] == call.batch.num_blocks);
    const std::int64_t block = cache.size() / cache.shape()[0];
    std::int64_t zeros = 0;
    for (std::int64_t b = 0; b < cache.shape()[0]; ++b) zeros += cache.number(b * block) == 0;
    CHECK(zeros == 3);
}

TEST_CASE("rows that no sequence has stay outside") {
    RecordingEngine engine;
    const CallShape shape = even_shape("op=MultiHeadAttention,head_dim=64,group=2,t1=f32", 2, 1, 9);
    const IndexArrays arrays(shape);
    CallTensors padded(arrays, {50, 70});
    Rng rng(1);
    draw_inputs(padded.tensors, rng);
    const auto kernel = engine.engine().kernel(arrays.spec).value();
    kernel.plan(arrays.batch).value().run(padded.tensors).value();
    const tool::Recording recording = read(engine.files().at(0));
    CHECK(recording.input("query").shape()[0] == 2);
    CHECK(recording.input("key").shape()[0] == 18);
    CHECK(recording.got.at("attn_output").shape()[0] == 2);
}

TEST_CASE("the n-th call, each n-th, those of a spec, a program or a layer") {
    const auto count = [](const std::string& filter) {
        RecordingEngine engine(filter);
        const ApiCall decode = scattered_call(kPaged, 4, 2);
        for (int step = 0; step < 3; ++step) {
            engine.run(decode, {}, 0);
            engine.run(decode, {}, 1);
        }
        engine.run(scattered_call("op=MultiHeadAttention,head_dim=64,group=2,t1=f32", 5));
        return engine.files().size();
    };
    CHECK(count("") == 7);
    CHECK(count("call=4") == 1);
    CHECK(count("call=8") == 0);
    CHECK(count("every=3") == 3);
    CHECK(count("layer=1") == 3);
    CHECK(count("layer=1,every=2") == 2);
    CHECK(count("op=MultiHeadAttention") == 1);
    CHECK(count("op=MultiHeadCacheAttention,head_dim=64") == 6);
    CHECK(count("head_dim=128") == 0);
    CHECK(count("program=store") == 6);
    CHECK(count("program=load") == 0);
    CHECK(count("max_files=2") == 2);
    CHECK(count("max_bytes=1") == 0);
}

TEST_CASE("limits are said once") {
    for (const char* filter : {"max_files=1", "max_bytes=1000", "max_bytes=300000"}) {
        CAPTURE(std::string(filter));
        RecordingEngine engine(filter);
        const ApiCall call = scattered_call(kPaged, 4);
        for (int i = 0; i < 6; ++i) engine.run(call);
        REQUIRE(engine.heard().warnings.size() == 1);
        CHECK_MESSAGE(engine.heard().warnings[0].find(std::string(filter).substr(0, 9)) != std::string::npos,
                      engine.heard().warnings[0]);
    }
}

TEST_CASE("a run that fails takes no room from later ones") {
    for (const char* filter : {"max_files=1", "max_bytes=250000"}) {
        CAPTURE(std::string(filter));
        RecordingEngine engine(filter);
        const ApiCall call = scattered_call(kPaged, 4);
        kvjit_executor executor;
        kvjit_executor_init(&executor);
        bool fails = true;
        executor.context = &fails;
        executor.concurrency = 1;
        executor.run = [](void* context, void (*task)(void*, std::int64_t), void* argument, std::int64_t count) {
            if (*static_cast<bool*>(context)) throw std::runtime_error("no threads today");
            for (std::int64_t i = 0; i < count; ++i) task(argument, i);
        };
        PlanOptions options;
        options.executor = &executor;
        for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(engine.run(call, options), Exception);
        CHECK(engine.files().empty());
        fails = false;
        engine.run(call, options);
        CHECK(engine.files().size() == 1);
        CHECK(engine.heard().warnings.empty());
    }
}

TEST_CASE("recording begins and ends while plans live; a bad setting changes nothing") {
    RecordingEngine engine("call=1000");
    const ApiCall call = scattered_call(kPaged, 4);
    const auto kernel = engine.engine().kernel(call.spec).value();
    auto plan = kernel.plan(call.batch).value();
    plan.run(call.tensors).value();
    CHECK(engine.files().empty());
    engine.engine().record(engine.calls()).value();
    plan.run(call.tensors).value();
    CHECK(engine.files().size() == 1);
    const auto refused = engine.engine().record(engine.calls() + ":call=x");
    REQUIRE(!refused);
    CHECK(refused.error().status() == KVJIT_BAD_ARGUMENT);
    CHECK(std::string(refused.error().argument()) == "setting");
    plan.run(call.tensors).value();
    CHECK(engine.files().size() == 2);
    engine.engine().record("").value();
    plan.run(call.tensors).value();
    CHECK(engine.files().size() == 2);
}

TEST_CASE("slopes are the caller's only while a plan is made") {
    RecordingEngine engine;
    ApiCall call =
        scattered_call("op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,is_alibi=1,cache_mode=offset", 4);
    std::vector<float> slopes = {0.5F, 0.25F, 0.125F, 2.0F};
    call.batch.alibi_slopes = slopes.data();
    auto plan = engine.engine().kernel(call.spec).value().plan(call.batch).value();
    std::fill(slopes.begin(), slopes.end(), 77.0F);
    plan.run(call.tensors).value();
    CHECK(read(engine.files().at(0)).input("alibi_slopes").number(3) == 2);
}

TEST_CASE("indices that are wrong are said, and the call goes on unchecked") {
    RecordingEngine engine;
    ApiCall call = scattered_call(kPaged, 4);
    PlanOptions options;
    options.check_level = KVJIT_CHECK_NONE;
    auto plan = engine.engine().kernel(call.spec).value().plan(call.batch, options).value();
    // Two sequences' new tokens go to one slot: legal memory, and wrong.
    const std::size_t columns = call.table.size() / 4;
    call.table[9] = call.table[3 * columns];
    call.kvstarts = {0, 37, 57, 62, 63};
    plan.run(call.tensors).value();
    CHECK(engine.files().empty());
    REQUIRE(engine.heard().warnings.size() == 1);
    CHECK_MESSAGE(engine.heard().warnings[0].starts_with("a call was not recorded: "), engine.heard().warnings[0]);
    CHECK_MESSAGE(engine.heard().warnings[0].find("sequence") != std::string::npos, engine.heard().warnings[0]);
}

TEST_CASE("a refused call is not recorded, nor counted") {
    RecordingEngine engine("call=1");
    ApiCall call = scattered_call(kPaged, 4);
    auto plan = engine.engine().kernel(call.spec).value().plan(call.batch).value();
    kvjit_tensors wrong = call.tensors;
    wrong.query.shape[2] = 32;
    CHECK(!plan.run(wrong));
    CHECK(engine.files().empty());
    plan.run(call.tensors).value();
    CHECK(engine.files().size() == 1);
}

TEST_CASE("threads record side by side") {
    RecordingEngine engine;
    std::vector<ApiCall> calls;
    for (std::uint64_t i = 0; i < 4; ++i) calls.push_back(scattered_call(kPaged, i));
    engine.run(calls[0]);  // compiles
    std::vector<std::thread> threads;
    for (const ApiCall& call : calls) {
        threads.emplace_back([&engine, &call] {
            PlanOptions options;
            options.num_threads = 1;
            auto plan = engine.engine().kernel(call.spec).value().plan(call.batch, options).value();
            for (int i = 0; i < 5; ++i) plan.run(call.tensors).value();
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(engine.files().size() == 21);
    for (const std::string& file : engine.files()) read(file);
}

}  // namespace
}  // namespace kvjit::test
