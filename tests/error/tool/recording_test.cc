// Recordings that are damaged or hostile: each is refused with a sentence that says what and where. And what the
// command says of good ones.
#include "recording/recording.h"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <string>

#include "call/call.h"
#include "child.h"
#include "kvjit/kvjit.hpp"
#include "recorded_file.h"
#include "support/memory_file.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

using nlohmann::json;

#define CHECK_SAYS(error, part) CHECK_MESSAGE(std::string(error).find(part) != std::string::npos, error)

/// The file of a call that kvjit has recorded.
const std::string& recorded_file() {
    static const TemporaryFolder folder;
    static const std::string file = [] {
        EngineOptions options;
        const std::string calls = folder.path("calls");
        options.record = calls.c_str();
        const auto engine = Engine::create(options).value();
        ApiCall call(even_shape(
            "op=MultiHeadCacheAttention,head_dim=16,group=2,t1=f32,cache_mode=page_table,page_size=4", 2, 1, 9));
        call.place_tokens(nullptr, 300);
        static_cast<CallTensors&>(call) = CallTensors(call, {2, 18});
        Rng rng(1);
        draw_inputs(call.tensors, rng);
        engine.kernel(call.spec).value().plan(call.batch).value().run(call.tensors).value();
        return files_in(calls).at(0);
    }();
    return file;
}

std::string error_of(const std::vector<std::byte>& bytes) {
    const MemoryFile memory(bytes);
    const auto file = tool::SafetensorsFile::open(memory.path());
    if (!file) return file.error();
    const auto call = tool::read_recording(*file);
    return call ? "" : call.error();
}

std::string error_after(const std::function<void(RecordedFile&)>& damage) {
    RecordedFile file(recorded_file());
    damage(file);
    return error_of(file.assemble());
}

std::string error_of_meta(const std::string& field, const json& value) {
    return error_after([&](RecordedFile& file) { file.header["__metadata__"][field] = value; });
}

/// The file with a tensor more, of as many bytes.
std::string error_with_tensor(const std::string& name, const char* dtype, const json& shape, std::size_t bytes) {
    return error_after([&](RecordedFile& file) {
        const std::size_t begin = file.data.size();
        file.data.resize(begin + bytes);
        file.header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, begin + bytes}}};
    });
}

TEST_CASE("a recording is one") {
    CHECK(error_after([](RecordedFile&) {}) == "");
}

TEST_CASE("metadata that are missing, unknown or wrong") {
    CHECK_SAYS(error_after([](RecordedFile& file) { file.header["__metadata__"].erase("spec"); }),
               "metadata field 'spec' is missing");
    CHECK_SAYS(error_of_meta("spec", "op=Softmax"), "'spec' is 'op=Softmax', expected the text of a spec: ");
    CHECK_SAYS(error_of_meta("spec", "op=Relayout"), "an operator that kvjit_run runs");
    CHECK_SAYS(error_of_meta("wings", "2"), "metadata field 'wings' is unknown");
    CHECK_SAYS(error_of_meta("num_heads", "two"), "'num_heads' is 'two', expected an integer");
    CHECK_SAYS(error_of_meta("softmax_scale", "x"), "'softmax_scale' is 'x'");
    CHECK_SAYS(error_of_meta("stores_nothing", "2"), "'stores_nothing' is '2', expected an integer from 0 to 1");
    CHECK(error_of_meta("was.anything", "free text") == "");
    for (const char* strides : {"", "1,2", "1,2,3,4", "a,b,c", "64,-16,1", "64,16,1,", "9223372036854775807,1,1"}) {
        CAPTURE(std::string(strides));
        const std::string error = error_of_meta("strides.query", strides);
        if (*strides != 0) CHECK_SAYS(error, "metadata field 'strides.query' is '");
    }
    CHECK(error_of_meta("strides.query", "128,16,1") == "");
    CHECK_SAYS(error_of_meta("strides.wings", "1"), "metadata field 'strides.wings' is unknown");
}

TEST_CASE("tensors that are missing, unknown or of a wrong length") {
    CHECK_SAYS(error_with_tensor("wings", "F32", {1}, 4), "tensor 'wings' is unknown");
    CHECK_SAYS(error_with_tensor("got.wings", "F32", {1}, 4), "tensor 'got.wings' is unknown");
    CHECK_SAYS(error_with_tensor("key", "F32", {1}, 4), "tensor 'key' is unknown");  // of other operators
    CHECK(error_with_tensor("was.wings", "F32", {1}, 4) == "");
    CHECK_SAYS(error_with_tensor("rowstarts", "I64", {5}, 40), "tensor 'rowstarts' has shape [5], expected [3]");
    CHECK_SAYS(error_with_tensor("kvlens", "I32", {2}, 8), "tensor 'kvlens' has dtype I32, expected I64");
    CHECK_SAYS(error_with_tensor("alibi_slopes", "F32", {3}, 12), "'alibi_slopes' has shape [3], expected [4]");
    CHECK_SAYS(error_with_tensor("store_slots", "F64", {2}, 16), "tensor 'store_slots' has dtype F64");
    CHECK_SAYS(error_with_tensor("store_slots", "I64", {1, 1, 1, 1, 1, 1, 1, 1, 2}, 16), "at most 8 axes");
    CHECK_SAYS(error_after([](RecordedFile& file) {
                   file.header["starts"] = file.header["seqstarts"];
                   file.header.erase("seqstarts");
               }),
               "tensor 'seqstarts' is missing");
    CHECK_SAYS(error_with_tensor("extra", "U8", {0}, 0), "tensor 'extra' is unknown");
}

TEST_CASE("60,000 tensors, and every truncation") {
    CHECK_SAYS(error_after([](RecordedFile& file) {
                   for (int i = 0; i < 60'000; ++i) {
                       const std::size_t at = file.data.size();
                       file.header["x" + std::to_string(i)] = {
                           {"dtype", "U8"}, {"shape", {0}}, {"data_offsets", {at, at}}};
                   }
               }),
               "tensor 'x0' is unknown");
    const auto whole = RecordedFile(recorded_file()).assemble();
    for (std::size_t size = 0; size < whole.size(); size += 7) {
        CHECK(error_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}) != "");
    }
}

TEST_CASE("counts that no memory holds are refused when the call is replayed, by their names") {
    const auto replayed = [](const std::function<void(RecordedFile&)>& damage) {
        RecordedFile file(recorded_file());
        damage(file);
        const ChildResult result = run_kvjit({"replay", "--oracle", file.write()});
        CHECK(result.exit_code == 2);
        CHECK(mentions(result.out, "1 could not run"));
        return result.err;
    };
    const auto with = [&](const char* field, const char* value) {
        return replayed([&](RecordedFile& file) { file.header["__metadata__"][field] = value; });
    };
    CHECK_SAYS(with("num_heads", "4611686018427387904"), "num_heads");
    CHECK_SAYS(with("max_tokens", "9223372036854775807"), "max_tokens");
    CHECK_SAYS(with("num_kv_heads", "-1"), "num_kv_heads");
    CHECK_SAYS(with("spec",
                    "op=MultiHeadCacheAttention,head_dim=16,group=2,t1=f32,cache_mode=page_table,page_size=1000000000"),
               "page_size");
    for (const char* name : {"seqstarts", "kvstarts", "cachestarts"}) {
        const std::string error = replayed([&](RecordedFile& file) {
            const std::int64_t large = std::int64_t{1} << 29;
            std::memcpy(file.tensor_bytes(name).data() + 8, &large, sizeof large);
        });
        CHECK_SAYS(error, "KVJIT_BAD_INDEX");
    }
}

TEST_CASE("a replay that compares nothing has not passed") {
    const ChildResult none = run_kvjit({"replay", "--op", "KeyValueCache", recorded_file()});
    CHECK(none.exit_code == 2);
    CHECK_MESSAGE(mentions(none.err, "no file has a call of the operator that --op asks for"), none.err);
    RecordedFile file(recorded_file());
    file.header["was.attn_output"] = file.header["got.attn_output"];
    file.header.erase("got.attn_output");
    const std::string path = file.write();
    for (const char* option : {"--bits", "--oracle"}) {
        const ChildResult lacking = run_kvjit({"replay", option, path});
        CHECK(lacking.exit_code == 2);
        CHECK_MESSAGE(mentions(lacking.err, "the file has got.* but no got.attn_output"), lacking.err);
    }
}

TEST_CASE("replay says what a recording gave, beside the oracle, and on which target") {
    const ChildResult plain = run_kvjit({"replay", "--bits", recorded_file()});
    CHECK(plain.exit_code == 0);
    CHECK_MESSAGE(mentions(plain.out, "1 passed, 0 failed, 0 could not run"), plain.out);
    RecordedFile wrong(recorded_file());
    wrong.tensor_bytes("got.attn_output")[4 * (3 * 16 + 5) + 3] ^= std::byte{0x40};  // head 3, d 5
    const std::string path = wrong.write();
    const ChildResult oracle = run_kvjit({"replay", "--oracle", path});
    CHECK(oracle.exit_code == 1);
    CHECK_MESSAGE(mentions(oracle.out, "1 passed, 1 failed"), oracle.out);
    CHECK(mentions(oracle.out, "  as recorded"));
    CHECK_MESSAGE(mentions(oracle.out, "attn_output[token 0 (sequence 0, its token 0), head 3, d 5] is "), oracle.out);
    CHECK(mentions(oracle.out, "1e-05 is allowed"));
    const ChildResult emulated = run_kvjit({"replay", "--target", "cuda-emulated", path});
    CHECK(emulated.exit_code == 1);
    CHECK_MESSAGE(mentions(emulated.out, "head 3, d 5] is "), emulated.out);
    CHECK(run_kvjit({"replay", "--op", "KeyValueCache", path}).exit_code == 0);  // it is none
}

}  // namespace
}  // namespace kvjit::test
