// Recordings that are damaged or hostile: each is refused with a sentence that says what and where. And what the
// command says of good ones.
#include "recording/recording.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "call/call.h"
#include "child.h"
#include "kvjit/kvjit.hpp"
#include "recorded_file.h"
#include "support/memory_file.h"
#include "support/read_file.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

using nlohmann::json;

#define CHECK_SAYS(error, part) CHECK_MESSAGE(std::string(error).find(part) != std::string::npos, error)

/// Records a call of two sequences with 9 keys each, 4 query heads over 2 kv heads of 16. `more`: fields of its spec.
std::string record_call(const TemporaryFolder& folder, const std::string& more) {
    EngineOptions options;
    const std::string calls = folder.path("calls");
    options.record = calls.c_str();
    const auto engine = Engine::create(options).value();
    ApiCall call(even_shape(
        "op=MultiHeadCacheAttention,head_dim=16,group=2,t1=f32,cache_mode=page_table,page_size=4" + more, 2, 1, 9));
    call.place_tokens(nullptr, 300);
    static_cast<CallTensors&>(call) = CallTensors(call, {2, 18});
    Rng rng(1);
    draw_inputs(call.tensors, rng);
    engine.kernel(call.spec).value().plan(call.batch).value().run(call.tensors).value();
    return files_in(calls).at(0);
}

const std::string& recorded_file() {
    static const TemporaryFolder folder;
    static const std::string file = record_call(folder, "");
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
    CHECK_SAYS(error_of_meta("format", "kvjit.case.1"), "'format' is 'kvjit.case.1', expected kvjit.case.2");
    CHECK_SAYS(error_of_meta("wings", "2"), "metadata field 'wings' is unknown");
    CHECK_SAYS(error_of_meta("num_heads", "two"), "'num_heads' is 'two', expected an integer");
    CHECK_SAYS(error_of_meta("softmax_scale", "x"), "'softmax_scale' is 'x'");
    CHECK_SAYS(error_of_meta("stores_nothing", "2"), "'stores_nothing' is '2', expected an integer from 0 to 1");
    CHECK_SAYS(error_of_meta("split_keys", "-64"), "'split_keys' is '-64', expected an integer from 0 to");
    CHECK_SAYS(error_of_meta("prefill_split_keys", "-64"),
               "'prefill_split_keys' is '-64', expected an integer from 0 to");
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
    const std::size_t recorded = oracle.out.find("  as recorded");
    REQUIRE(recorded != std::string::npos);
    const std::string target = oracle.out.substr(oracle.out.find("FAIL    ", recorded) + 8);
    const std::string taken = target.substr(0, target.find('\n'));
    CHECK(run_kvjit({"replay", "--bits", "--target", taken, recorded_file()}).exit_code == 0);
    CHECK_MESSAGE(mentions(oracle.out, "attn_output[token 0 (sequence 0, its token 0), head 3, d 5] is "), oracle.out);
    CHECK(mentions(oracle.out, "1e-05 is allowed"));
    const ChildResult emulated = run_kvjit({"replay", "--target", "cuda-emulated", path});
    CHECK(emulated.exit_code == 1);
    CHECK_MESSAGE(mentions(emulated.out, "head 3, d 5] is "), emulated.out);
}

/// The library's templates, in which one line is another one.
std::string edited_templates(const TemporaryFolder& folder, const std::string& file, const std::string& line,
                             const std::string& other) {
    const std::string edited = folder.path("edited"), path = edited + "/" + file;
    std::filesystem::copy(KVJIT_TEMPLATES, edited, std::filesystem::copy_options::recursive);
    std::string text = read_file(path);
    const std::size_t at = text.find(line);
    REQUIRE(at != text.npos);
    folder.write("edited/" + file, text.replace(at, line.size(), other));
    return edited;
}

TEST_CASE("a kernel that the emulator finds wrong is a call that failed, with the line") {
    const TemporaryFolder folder;
    const Variable templates("KVJIT_TEMPLATE_DIR", edited_templates(folder, "cuda/attend/dot/attend.h",
                                                                    "if constexpr (kDecode) barrier();", ""));
    for (const auto& [file, tally] : {std::pair{recorded_file(), "0 passed, 1 failed, 0 could not run"},
                                      std::pair{golden_file("000_"), "1 passed, 2 failed, 0 could not run"}}) {
        const ChildResult wrong = run_kvjit({"replay", "--target", "cuda-emulated", file});
        CHECK(wrong.exit_code == 1);
        CHECK(wrong.err.empty());
        CHECK_SAYS(wrong.out, tally);
        CHECK_SAYS(wrong.out, "  FAIL  ");
        CHECK_SAYS(wrong.out, "\n    KVJIT_CUDA_ERROR: an emulated kernel is wrong: ");
        CHECK_SAYS(wrong.out, " at templates/cuda/");
    }
}

TEST_CASE("replay names the formats that it reads, where a file has another, or says none") {
    const char* const kRead = ", expected kvjit.case.1, a reference case, or kvjit.case.2, a recording\n";
    RecordedFile file(recorded_file());
    file.header["__metadata__"]["format"] = "kvjit.case.3";
    const std::string newer = file.write();
    CHECK(run_kvjit({"replay", newer}).err ==
          "kvjit: " + newer + ": metadata field 'format' is 'kvjit.case.3'" + kRead);
    RecordedFile silent(recorded_file());
    silent.header["__metadata__"].erase("format");
    CHECK(mentions(run_kvjit({"replay", silent.write()}).err,
                   std::string(": metadata field 'format' is missing") + kRead));
}

/// Replays a file whose result is wrong at a byte, as --bits has it.
std::string bits_of_wrong(const std::string& path, const std::string& tensor, std::size_t byte) {
    RecordedFile file(path);
    file.tensor_bytes(tensor)[byte] ^= std::byte{0x40};
    const ChildResult result = run_kvjit({"replay", "--bits", file.write()});
    CHECK(result.exit_code == 1);
    CHECK_MESSAGE(mentions(result.out, "0 passed, 1 failed"), result.out);
    CHECK(!mentions(result.out, "inf"));
    return result.out;
}

TEST_CASE("under --bits the largest error is a number; codes have none, and their places have names") {
    // The highest bit of an exponent: what is expected is far larger than anything else.
    CHECK_SAYS(bits_of_wrong(recorded_file(), "got.attn_output", 3), " 1.0e+00  FAIL ");
    CHECK_SAYS(bits_of_wrong(recorded_file(), "got.cache", 3), " 1.0e+00  FAIL ");
    const TemporaryFolder folder;
    const std::string eight = record_call(folder, ",quant_bit=8");  // layout TL2HD
    const std::string code = bits_of_wrong(eight, "got.cache", 16 + 3);
    CHECK_SAYS(code, "         -  FAIL ");
    CHECK_SAYS(code, "cache[slot 0, layer 0, key or value 0, kv head 1, d 3] is ");
    CHECK_SAYS(bits_of_wrong(eight, "got.scale", 4 * 5 + 3),
               "scale[slot 0, layer 0, key or value 1, kv head 0, group 1] is ");
    const TemporaryFolder other;
    CHECK_SAYS(bits_of_wrong(record_call(other, ",quant_bit=4"), "got.cache", 3),
               "cache[slot 0, layer 0, key or value 0, kv head 0, pair of d 3] is ");
}

TEST_CASE("a file is called by its whole name, but for .safetensors") {
    const TemporaryFolder folder;
    const std::string whole = read_file(recorded_file());
    const ChildResult result =
        run_kvjit({"replay", folder.write("call.v1.2.safetensors", whole), folder.write("call.1", whole)});
    CHECK(result.exit_code == 0);
    CHECK_MESSAGE(mentions(result.out, "\ncall.v1.2  MultiHeadCacheAttention "), result.out);
    CHECK_MESSAGE(mentions(result.out, "\ncall.1     MultiHeadCacheAttention "), result.out);
}

/// A tensor's shape, type and bytes.
std::pair<json, std::string> tensor_of(RecordedFile& file, const std::string& name) {
    const std::span<std::byte> bytes = file.tensor_bytes(name);
    return {{file.header[name]["dtype"], file.header[name]["shape"]},
            {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
}

TEST_CASE("--oracle -o writes the recording with what it should give, and a replay holds both to that") {
    const TemporaryFolder folder;
    const std::string path = folder.path("expected.safetensors");
    const ChildResult made = run_kvjit({"replay", "--oracle", "-o", path, recorded_file()});
    CHECK_MESSAGE(made.exit_code == 0, made.err);
    CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::mask) ==
          (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
    RecordedFile before(recorded_file()), after(path);
    CHECK(after.header["__metadata__"] == before.header["__metadata__"]);
    std::set<std::string> added;
    for (const auto& [name, value] : after.header.items()) {
        if (!before.header.contains(name)) added.insert(name);
        if (name != "__metadata__" && before.header.contains(name))
            CHECK(tensor_of(after, name) == tensor_of(before, name));
    }
    CHECK(added == std::set<std::string>{"out.attn_output", "out.cache", "out.lse"});
    CHECK(after.header.size() == before.header.size() + added.size());
    CHECK(after.header["out.attn_output"]["dtype"] == "F32");
    CHECK(tensor_of(after, "out.cache") == tensor_of(after, "got.cache"));

    const ChildResult good = run_kvjit({"replay", path});
    CHECK_MESSAGE(mentions(good.out, "2 passed, 0 failed, 0 could not run"), good.out);
    after.tensor_bytes("out.attn_output")[3] ^= std::byte{0x40};
    const ChildResult wrong = run_kvjit({"replay", after.write()});
    CHECK_MESSAGE(mentions(wrong.out, "0 passed, 2 failed"), wrong.out);
    RecordedFile got(path);
    got.tensor_bytes("got.attn_output")[3] ^= std::byte{0x40};
    const ChildResult recorded = run_kvjit({"replay", got.write()});
    CHECK_MESSAGE(mentions(recorded.out, "1 passed, 1 failed"), recorded.out);
}

TEST_CASE("--oracle -o refuses what has out.* already, and what it can't write or copy") {
    const TemporaryFolder folder;
    const std::string path = folder.path("expected.safetensors");
    const auto error = [](const std::string& output, const std::string& file) {
        const ChildResult refused = run_kvjit({"replay", "--oracle", "-o", output, file});
        CHECK(refused.exit_code == 2);
        return refused.err;
    };
    CHECK_SAYS(error(path, golden_file("000_")), "it is a reference case, which has out.* already");
    CHECK_SAYS(error(folder.path("absent/file"), recorded_file()), "can't be written: No such file or directory");
    RecordedFile file(recorded_file());
    const std::size_t begin = file.data.size();
    file.data.resize(begin + 8);
    file.header["was.clock"] = {{"dtype", "F64"}, {"shape", {1}}, {"data_offsets", {begin, begin + 8}}};
    CHECK_SAYS(error(path, file.write()), "tensor 'was.clock' has dtype F64");
    CHECK(!std::filesystem::exists(path));
}

TEST_CASE("a made-up call is recorded, the same each time, and replays on every target") {
    const TemporaryFolder folder;
    const std::string first = folder.path("first"), second = folder.path("second");
    for (const char* spec :
         {"head_dim=64,group=2,cache_mode=page_table,page_size=4,quant_bit=8", "op=KeyValueCache,head_dim=64",
          "op=MultiHeadAttention,head_dim=64,t1=f32", "op=Merge,head_dim=64",
          "head_dim=64,cache_mode=block_pointers,page_size=8,layout=L2HTD"}) {
        CAPTURE(std::string(spec));
        for (const std::string& file : {first, second}) {
            const ChildResult made = run_kvjit({"record", spec, "--batch", "2x1:9+1x3:5", "-o", file});
            REQUIRE_MESSAGE(made.exit_code == 0, made.err);
            CHECK(made.err.empty());
            CHECK_SAYS(made.out, file + ": ");
            CHECK(mentions(made.out, "head_dim=64"));
        }
        const bool has_addresses = mentions(spec, "block_pointers");  // was.cachestarts, which differ between processes
        CHECK((has_addresses || read_file(first) == read_file(second)));
        CHECK(run_kvjit({"replay", "--bits", first}).exit_code == 0);
        const ChildResult oracle = run_kvjit({"replay", "--oracle", "--target", "cuda-emulated", first});
        CHECK_MESSAGE(oracle.exit_code == 0, oracle.out);
    }
    CHECK((std::filesystem::status(first).permissions() & std::filesystem::perms::group_all) ==
          std::filesystem::perms::none);
    const Variable nothing("KVJIT_RECORD", folder.path("calls"));
    CHECK(run_kvjit({"record", "op=Merge,head_dim=64", "-o", first}).exit_code == 0);
    CHECK(!std::filesystem::exists(folder.path("calls")));
}

TEST_CASE("record refuses what makes no call") {
    const TemporaryFolder folder;
    const auto error = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"record", "-o", folder.path("call")});
        const ChildResult refused = run_kvjit(arguments);
        CHECK(refused.exit_code == 2);
        CHECK(!std::filesystem::exists(folder.path("call")));
        return refused.err;
    };
    CHECK_SAYS(error({"head_dim=63x"}), "head_dim is");
    CHECK_SAYS(error({"op=Relayout"}), "op is Relayout; calls are made up of");
    CHECK_SAYS(error({"head_dim=64", "--batch", "1x2:1"}), "new tokens are among the keys");
    CHECK_SAYS(error({"head_dim=64", "--target", "cuda"}), "--target is cuda, a GPU; kvjit record runs on CPUs");
    CHECK_SAYS(error({}), "SPEC is missing");
    const Variable nowhere("TMPDIR", "/nowhere");
    CHECK_SAYS(error({"head_dim=64"}), "can't be created");
    CHECK(run_kvjit({"record", "head_dim=64"}).exit_code == 2);
}

}  // namespace
}  // namespace kvjit::test
