// Memory that is shared without order: each kind of mistake is found, in whatever order the threads ran, and named by
// the template's lines; kernels that are right raise no alarm.
#include "support.h"

using namespace kvjit;
using test::contains;
using test::kernel;

namespace {

constexpr int kSeeds = 20;

struct Case {
    rt::Grid grid{.threads = 64, .shared_bytes = 4096};
    test::Args args;
};

void check_found(const rt::ImagePtr& image, const Case& c, std::initializer_list<std::string_view> parts) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const std::string message = test::failure(image, c.grid, c.args, seed);
        for (const std::string_view part : parts) CHECK_MESSAGE(contains(message, part), message);
        CHECK_MESSAGE(contains(message, "KVJIT_EMULATION_SEED=" + std::to_string(seed)), message);
    }
}

// The same kernel with the line that mends it, and without.
struct Mended {
    std::string before, line, after;

    rt::ImagePtr right() const { return kernel(before + line + "\n" + after); }
    rt::ImagePtr wrong() const { return kernel(before + "\n" + after); }
};

void check_mended(const Mended& text, const Case& c, std::initializer_list<std::string_view> parts) {
    check_found(text.wrong(), c, parts);
    const rt::ImagePtr right = text.right();
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) test::run(right, c.grid, c.args, seed);
}

constexpr std::string_view kNoBarrier = "with no barrier between";

}  // namespace

TEST_CASE("shared memory written by one warp and read by another needs a barrier") {
    std::vector<unsigned> out(64);
    check_mended({R"(auto& x = shared_memory<u32[64]>(); x[thread_index()] = 0; barrier();
x[thread_index()] = 1;
)",
                  "barrier();", "args.words[thread_index()] = x[63 - thread_index()];"},
                 {.args = {.words = out.data()}}, {"shared memory at offset", "test.cu:2", "test.cu:4", kNoBarrier});
}

TEST_CASE("a barrier of the warp orders its lanes, and only them") {
    std::vector<unsigned> out(64);
    const std::string write =
        "auto& x = shared_memory<u32[64]>(); x[thread_index()] = 0; barrier();\nx[thread_index()] = 1;\n";
    const std::string in_warp = "args.words[thread_index()] = x[thread_index() ^ 31];";
    const std::string across = "args.words[thread_index()] = x[thread_index() ^ 32];";
    const Case c{.args = {.words = out.data()}};
    check_mended({write, "warp_barrier();", in_warp}, c, {"test.cu:2", "test.cu:4", kNoBarrier});
    check_found(kernel(write + "warp_barrier();\n" + across), c, {"test.cu:2", "test.cu:4", kNoBarrier});
}

TEST_CASE("a shuffle is no barrier") {
    std::vector<unsigned> out(64);
    check_found(kernel(R"(auto& x = shared_memory<u32[64]>();
x[thread_index()] = 1;
const u32 y = shuffle_xor(1u, 1);
args.words[thread_index()] = x[thread_index() ^ 1] + y;)"),
                {.args = {.words = out.data()}}, {"test.cu:2", "test.cu:4", kNoBarrier});
}

TEST_CASE("reading must end before the next write begins") {
    std::vector<unsigned> out(64);
    check_mended({R"(auto& x = shared_memory<u32[64]>();
x[thread_index()] = 1;
barrier();
for (i32 i = 0; i < 8; ++i) args.words[thread_index()] += x[(thread_index() + i) % 64];
)",
                  "barrier();", "x[thread_index()] = 2;"},
                 {.args = {.words = out.data()}}, {"test.cu:6", "test.cu:4", kNoBarrier});
}

TEST_CASE("all readers count, not the last one only") {
    // Thread 0 reads and writes; the reader between, thread 40, must not be forgotten for its own later read.
    std::vector<unsigned> out(128);
    check_found(kernel(R"(auto& x = shared_memory<u32[1]>();
if (thread_index() == 0) x[0] = 1;
barrier();
if (thread_index() == 40) args.words[0] = x[0];
if (thread_index() == 1) args.words[1] = x[0];
if (thread_index() < 32) {
    warp_barrier();
    if (thread_index() == 1) x[0] = 2;
})"),
                {.args = {.words = out.data()}}, {"thread 40", kNoBarrier});
}

TEST_CASE("the reader that is named is another thread than the writer, though that read too") {
    std::vector<unsigned> out(64);
    check_found(kernel(R"(auto& x = shared_memory<u32[1]>();
if (thread_index() == 0) x[0] = 1;
warp_barrier();
if (thread_index() == 20) args.words[20] = x[0];
shuffle(1, 0);
if (thread_index() == 3) args.words[3] = x[0];
shuffle(1, 0);
if (thread_index() == 3) x[0] = 2;)"),
                {.grid = {.threads = 32, .shared_bytes = 4}, .args = {.words = out.data()}},
                {"thread 3 writes", "thread 20 read them"});
}

TEST_CASE("neighbouring bytes are no conflict, overlapping ones are") {
    std::vector<unsigned> out(64);
    const Case c{.args = {.words = out.data()}};
    const rt::ImagePtr right = kernel(R"(auto& x = shared_memory<u8[64]>();
x[thread_index()] = static_cast<u8>(thread_index());
barrier();
args.words[thread_index()] = x[63 - thread_index()];
barrier();
if (thread_index() < 16) args.words[thread_index()] += reinterpret_cast<u32&>(x[4 * thread_index()]);)");
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) test::run(right, c.grid, c.args, seed);
    check_found(kernel(R"(auto& x = shared_memory<u32[64]>();
x[thread_index()] = 0;
barrier();
if (thread_index() == 1) reinterpret_cast<u8*>(&x[5])[1] = 1;
if (thread_index() == 2) reinterpret_cast<u16*>(&x[5])[0] = 1;)"),
                c, {"offset 2", "test.cu:4", "test.cu:5", kNoBarrier});
}

TEST_CASE("an access outside of the launch's shared memory is an error") {
    check_found(kernel("auto& x = shared_memory<u32[8]>();\n(&x[0])[args.number] = 1;"),
                {.grid = {.threads = 32, .shared_bytes = 32}, .args = {.number = 8}},
                {"writes 4 bytes of shared memory at offset 32", "test.cu:2", "the launch gave 32 bytes"});
    check_found(kernel("auto& x = shared_memory<u32[8]>();\nargs.words[0] = (&x[0])[args.number];"),
                {.grid = {.threads = 32, .shared_bytes = 32}, .args = {.number = -1}},
                {"reads 4 bytes of shared memory at offset -4", "test.cu:2", "the launch gave 32 bytes"});
}

TEST_CASE("shared memory holds nothing before it is written") {
    unsigned word = 0;
    check_found(kernel("auto& x = shared_memory<u32[8]>();\nargs.words[0] = x[3];"),
                {.grid = {.x = 2, .threads = 32, .shared_bytes = 32}, .args = {.words = &word}},
                {"offset 12", "test.cu:2", "no thread of the block has written them so far"});
}

TEST_CASE("what one block wrote into shared memory is not there for the next") {
    std::vector<unsigned> words(8);
    check_found(kernel(R"(auto& x = shared_memory<u32[32]>();
if (atomic_add(args.words, 1) < 32) x[thread_index()] = 1;
args.words[1] = x[thread_index()];)"),
                {.grid = {.x = 2, .threads = 32, .shared_bytes = 128}, .args = {.words = words.data()}}, {"test.cu:3"});
}

TEST_CASE("a misaligned access is an error, as on a GPU") {
    alignas(16) std::array<unsigned, 8> words{};
    check_found(kernel("u32 r[4];\nload16(r, args.words + 1);\nstore16(args.words, r);"),
                {.grid = {.threads = 32}, .args = {.words = words.data()}},
                {"reads 16 bytes of global memory", "test.cu:2", "no multiple of 16"});
    check_found(kernel("shared_memory<u32[64]>();\ncopy_async<8>(&shared_memory<u32[64]>()[1], args.words, true);"),
                {.args = {.words = words.data()}}, {"test.cu:2", "no multiple of 8"});
    check_found(
        kernel("\nargs.words[0] = *reinterpret_cast<const u32*>(reinterpret_cast<const char*>(args.words) + 2);"),
        {.args = {.words = words.data()}}, {"reads 4 bytes", "test.cu:2", "no multiple of 4"});
}

TEST_CASE("copies and matrices need shared memory") {
    alignas(16) unsigned words[64] = {};
    check_found(kernel("\ncopy_async<4>(args.words, args.words + 1, true);"), {.args = {.words = words}},
                {"has copy_async write", "test.cu:2", "that must be shared memory"});
    check_found(kernel("u32 r[4];\nload_matrices(r, args.words);"), {.args = {.words = words}},
                {"the warp of thread", "test.cu:2", "that must be shared memory"});
}

TEST_CASE("a null pointer is an error and no crash") {
    check_found(kernel("\nargs.words[thread_index()] = 1;"), {}, {"test.cu:2", "null pointer"});
}

TEST_CASE("a local variable stays with its thread") {
    check_found(kernel(R"(auto& x = shared_memory<u32*[1]>();
u32 mine[2] = {static_cast<u32>(args.number), 2};
if (thread_index() == 0) x[0] = mine;
barrier();
x[0][1] = 1;
barrier();
args.words[0] = mine[thread_index() % 2];)"),
                {}, {"test.cu:5", "local variable of another thread"});
}

TEST_CASE("an asynchronous copy's destination is nobody's until it was waited for") {
    alignas(16) unsigned in[256] = {};
    std::vector<unsigned> out(64);
    const Case c{.args = {.in = in, .words = out.data()}};
    const std::string issue = R"(auto& x = shared_memory<u32[64][4]>();
copy_async<16>(x[thread_index()], static_cast<const u32*>(args.in) + 4 * thread_index(), true);
commit_copies();
)";
    const std::string use = "args.words[thread_index()] = x[thread_index()][0];";
    check_mended({issue, "wait_copies<0>();", use}, c,
                 {"reads 4 bytes", "test.cu:5", "copy_async", "test.cu:2", "has not waited for"});
    check_found(kernel(issue + "barrier();\n" + use), c, {"test.cu:5", "test.cu:2", "has not waited for"});
    check_found(kernel(issue + "wait_copies<1>();\n" + use), c, {"test.cu:5", "test.cu:2", "has not waited for"});
    const std::string uncommitted = issue.substr(0, issue.find("commit"));
    check_found(kernel(uncommitted + "wait_copies<0>();\n" + use), c, {"test.cu:4", "test.cu:2"});
}

TEST_CASE("an asynchronous copy is others' after a barrier, too") {
    alignas(16) unsigned in[256] = {};
    std::vector<unsigned> out(64);
    check_mended({R"(auto& x = shared_memory<u32[64][4]>();
copy_async<16>(x[thread_index()], static_cast<const u32*>(args.in) + 4 * thread_index(), true);
commit_copies();
wait_copies<0>();
)",
                  "barrier();", "args.words[thread_index()] = x[63 - thread_index()][0];"},
                 {.args = {.in = in, .words = out.data()}}, {"test.cu:6"});
}

TEST_CASE("an asynchronous copy must not overwrite what others still read") {
    alignas(16) unsigned in[256] = {};
    std::vector<unsigned> out(64);
    check_mended({R"(auto& x = shared_memory<u32[64][4]>();
x[thread_index()][0] = 1;
barrier();
args.words[thread_index()] = x[63 - thread_index()][0];
)",
                  "barrier();",
                  "copy_async<16>(x[thread_index()], static_cast<const u32*>(args.in) + 4 * thread_index(), true);"},
                 {.args = {.in = in, .words = out.data()}}, {"test.cu:4", "test.cu:6"});
}

TEST_CASE("load_matrices reads for the whole warp") {
    std::vector<unsigned> out(64);
    check_mended(
        {R"(auto& x = shared_memory<u32[64][4]>();
for (i32 i = 0; i < 4; ++i) x[thread_index()][i] = 1;
)",
         "warp_barrier();", "u32 r[4];\nload_matrices(r, x[thread_index()]);\nargs.words[thread_index()] = r[0];"},
        {.args = {.words = out.data()}}, {"the warp of thread", "test.cu:2", "test.cu:5", kNoBarrier});
}

TEST_CASE("global memory within a block needs a barrier") {
    std::vector<unsigned> words(64);
    check_mended({"args.words[thread_index()] = 1;\n", "barrier();", "args.words[(thread_index() + 40) % 64] += 1;"},
                 {.args = {.words = words.data()}}, {"global memory at address", "test.cu:1", "test.cu:3", kNoBarrier});
}

TEST_CASE("blocks that write the same memory are found") {
    std::vector<unsigned> words(64);
    check_found(kernel("args.words[thread_index()] = static_cast<u32>(block_x());"),
                {.grid = {.x = 3, .threads = 64}, .args = {.words = words.data()}},
                {"of block", "test.cu:1", "with no fence"});
    check_found(kernel("const u32 x = args.words[3];\nif (block_x() == 1) args.words[3] = x + 1;"),
                {.grid = {.x = 2, .threads = 32}, .args = {.words = words.data()}}, {"test.cu:"});
}

namespace {

// Each block leaves a number; the last one to come adds them up.
std::string last_block(std::string_view release, std::string_view acquire) {
    return R"(auto& last = shared_memory<u32>();
args.words[1 + 64 * block_x() + thread_index()] = static_cast<u32>(block_x());
)" + std::string(release) +
           R"(
if (thread_index() == 0) last = atomic_add(args.words, 1);
barrier();
if (last != args.number - 1) return;
)" + std::string(acquire) +
           R"(
u32 sum = 0;
for (i64 b = 0; b < args.number; ++b) sum += args.words[1 + 64 * b + 63 - thread_index()];
static_cast<u32*>(args.out)[thread_index()] = sum;
if (thread_index() == 0) args.words[0] = 0;)";
}

}  // namespace

TEST_CASE("a counter between fences hands one block's writes to another") {
    for (const std::string_view release : {"thread_fence(); barrier();", "barrier(); thread_fence();"}) {
        const rt::ImagePtr image = kernel(last_block(release, "thread_fence();"));
        for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
            std::vector<unsigned> words(1 + 5 * 64), out(64);
            test::run(image, {.x = 5, .threads = 64, .shared_bytes = 4},
                      {.out = out.data(), .words = words.data(), .number = 5}, seed);
            CHECK(words[0] == 0);
            for (const unsigned sum : out) CHECK(sum == 10);
        }
    }
}

TEST_CASE("a counter without its fences, or without the barrier before, hands on nothing") {
    const std::pair<std::string_view, std::string_view> wrong[] = {
        {"barrier();", "thread_fence();"}, {"thread_fence();", "thread_fence();"}, {"thread_fence(); barrier();", ""}};
    for (const auto& [release, acquire] : wrong) {
        const rt::ImagePtr image = kernel(last_block(release, acquire));
        std::vector<unsigned> words(1 + 5 * 64), out(64);
        for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
            words.assign(words.size(), 0);
            const std::string message = test::failure(image, {.x = 5, .threads = 64, .shared_bytes = 4},
                                                      {.out = out.data(), .words = words.data(), .number = 5}, seed);
            CHECK_MESSAGE(contains(message, "with no fence, atomic_add and fence between"), message);
            CHECK_MESSAGE(contains(message, "test.cu:9"), message);
            CHECK_MESSAGE(contains(message, "test.cu:2"), message);
        }
    }
}

TEST_CASE("a ring of asynchronous copies, as attention kernels have it, raises no alarm") {
    const rt::ImagePtr image = kernel(R"(
        constexpr i32 kStages = 3;
        struct alignas(16) Shared { float ring[kStages][64][4]; float sums[2]; };
        auto& shared = shared_memory<Shared>();
        const i32 t = thread_index();
        const float* in = static_cast<const float*>(args.in);
        const auto fetch = [&](i64 tile) {
            copy_async<16>(shared.ring[tile % kStages][t], in + (tile * 64 + t) * 4, tile < args.number);
            commit_copies();
        };
        for (i32 s = 0; s < kStages - 1; ++s) fetch(s);
        float sum = 0;
        for (i64 tile = 0; tile < args.number; ++tile) {
            wait_copies<kStages - 2>();
            barrier();
            fetch(tile + kStages - 1);
            for (i32 i = 0; i < 64; ++i) sum += shared.ring[tile % kStages][i][t % 4];
        }
        for (i32 mask = 1; mask < 4; mask *= 2) sum += shuffle_xor(sum, mask);
        if (t % 32 == 0) shared.sums[t / 32] = sum;
        barrier();
        if (t == 0) static_cast<float*>(args.out)[block_x()] = shared.sums[0] + shared.sums[1];
    )");
    std::vector<float> in(7 * 256), out(3);
    float total = 0;
    for (std::size_t i = 0; i < in.size(); ++i) total += in[i] = static_cast<float>(i % 5);
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        test::run(image, {.x = 3, .threads = 64, .shared_bytes = 3 * 1024 + 16},
                  {.in = in.data(), .out = out.data(), .number = 7}, seed);
        for (const float x : out) CHECK(x == 2 * total);
    }
}
