// Threads that work together: barriers, shuffles, votes, and what goes wrong with them.
#include "support.h"

using namespace kvjit;
using test::contains;
using test::failure;
using test::kernel;
using test::run;

namespace {

constexpr int kSeeds = 20;

}  // namespace

TEST_CASE("threads and blocks know where they are") {
    const auto image = kernel(R"(
        u32* out = static_cast<u32*>(args.out);
        const i64 block = block_y() * 3 + block_x();
        out[block * 64 + thread_index()] = static_cast<u32>(1000 * block_y() + 100 * block_x() + thread_index());
    )");
    std::vector<unsigned> out(3 * 5 * 64);
    run(image, {.x = 3, .y = 5, .threads = 64}, {.out = out.data()});
    for (unsigned y = 0; y < 5; ++y)
        for (unsigned x = 0; x < 3; ++x)
            for (unsigned t = 0; t < 64; ++t) CHECK(out[(y * 3 + x) * 64 + t] == 1000 * y + 100 * x + t);
}

TEST_CASE("a barrier makes the block's writes visible, for every seed") {
    const auto image = kernel(R"(
        struct Shared { u32 values[2][1024]; };
        auto& shared = shared_memory<Shared>();
        const i32 t = thread_index();
        u32 mine = static_cast<u32>(t);
        for (i32 i = 0; i < 10; ++i) {
            shared.values[i % 2][t] = mine;
            barrier();
            mine = shared.values[i % 2][(t + 33) % args.number] + 1;
        }
        static_cast<u32*>(args.out)[t] = mine;
    )");
    for (const unsigned threads : {32U, 128U, 1024U}) {
        // Few of the largest: ThreadSanitizer knows 8128 fibers at most.
        for (std::uint64_t seed = 1; seed <= (threads < 1024 ? kSeeds : 3); ++seed) {
            std::vector<unsigned> out(threads);
            run(image, {.threads = threads, .shared_bytes = 8192}, {.out = out.data(), .number = threads}, seed);
            for (unsigned t = 0; t < threads; ++t) CHECK(out[t] == (t + 330) % threads + 10);
        }
    }
}

TEST_CASE("shuffles and votes") {
    const auto image = kernel(R"(
        const i32 t = thread_index();
        float* f = static_cast<float*>(args.out) + 8 * t;
        f[0] = shuffle_xor(t * 0.5f, 5);
        f[1] = static_cast<float>(shuffle_xor(-t, 16));
        f[2] = static_cast<float>(shuffle_xor(static_cast<u32>(t), 1));
        f[3] = static_cast<float>(shuffle_xor(i64{t} << 40, 3) >> 40);
        f[4] = shuffle(t * 0.25f, 7);
        f[5] = static_cast<float>(shuffle(t, (t * 3) % 32));
        args.words[2 * t] = ballot(t % 3 == 0);
        args.words[2 * t + 1] = ballot(t == 63);
    )");
    std::vector<float> f(64 * 8);
    std::vector<unsigned> votes(64 * 2);
    run(image, {.threads = 64}, {.out = f.data(), .words = votes.data()});
    unsigned thirds[2] = {};
    for (int t = 0; t < 64; ++t) thirds[t / 32] |= (t % 3 == 0 ? 1U : 0U) << t % 32;
    for (int t = 0; t < 64; ++t) {
        const int warp = t / 32 * 32;
        CHECK(f[8 * t] == static_cast<float>(t ^ 5) * 0.5f);
        CHECK(f[8 * t + 1] == -(t ^ 16));
        CHECK(f[8 * t + 2] == (t ^ 1));
        CHECK(f[8 * t + 3] == (t ^ 3));
        CHECK(f[8 * t + 4] == static_cast<float>(warp + 7) * 0.25f);
        CHECK(f[8 * t + 5] == warp + (t * 3) % 32);
        CHECK(votes[2 * t] == thirds[warp / 32]);
        CHECK(votes[2 * t + 1] == (warp == 32 ? 1U << 31 : 0U));
    }
}

TEST_CASE("atomic_add counts, and returns each value once") {
    const auto image =
        kernel("static_cast<u32*>(args.out)[block_x() * 64 + thread_index()] = atomic_add(args.words, 2);");
    std::vector<unsigned> before(4 * 64), seen(4 * 64);
    unsigned count = 0;
    run(image, {.x = 4, .threads = 64}, {.out = before.data(), .words = &count});
    CHECK(count == 2 * 4 * 64);
    for (const unsigned b : before) ++seen.at(b / 2);
    for (const unsigned s : seen) CHECK(s == 1);
}

TEST_CASE("a barrier that some threads leave out is an error with both lines") {
    const auto image = kernel("if (thread_index() < 40)\n    barrier();\nbarrier();\n");
    const std::string message = failure(image, {.threads = 64}, {});
    CHECK_MESSAGE(contains(message, "barrier at test.cu:2"), message);
    CHECK_MESSAGE(contains(message, "barrier at test.cu:3"), message);
    CHECK(contains(message, "KVJIT_EMULATION_SEED=1"));
}

TEST_CASE("a thread that returns before a barrier is an error") {
    const auto image = kernel("if (thread_index() == 40) return;\nbarrier();");
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const std::string message = failure(image, {.threads = 64}, {}, seed);
        CHECK_MESSAGE(contains(message, "barrier at test.cu:2"), message);
        CHECK_MESSAGE(contains(message, "thread 40"), message);
        CHECK_MESSAGE(contains(message, "return"), message);
    }
}

TEST_CASE("a lane that returns before its warp's shuffle is an error; other warps may go") {
    const auto image =
        kernel("if (thread_index() >= args.number) return;\nargs.words[thread_index()] = shuffle(1u, 3);");
    std::vector<unsigned> words(64);
    const std::string message = failure(image, {.threads = 64}, {.words = words.data(), .number = 33});
    CHECK_MESSAGE(contains(message, "shuffle at test.cu:2"), message);
    run(image, {.threads = 64}, {.words = words.data(), .number = 32});
    CHECK(words[31] == 1);
}

TEST_CASE("different collectives in one warp are an error with both lines") {
    const auto image = kernel("if (thread_index() % 2)\n    warp_barrier();\nelse\n    args.words[0] = ballot(true);");
    unsigned word = 0;
    const std::string message = failure(image, {.threads = 32}, {.words = &word});
    CHECK_MESSAGE(contains(message, "warp_barrier at test.cu:2"), message);
    CHECK_MESSAGE(contains(message, "ballot at test.cu:4"), message);
}

TEST_CASE("the same collective on different lines is an error") {
    const auto image = kernel("if (thread_index() % 2)\n    warp_barrier();\nelse\n    warp_barrier();");
    const std::string message = failure(image, {.threads = 32}, {});
    CHECK_MESSAGE(contains(message, "warp_barrier at test.cu:2"), message);
    CHECK_MESSAGE(contains(message, "warp_barrier at test.cu:4"), message);
}

TEST_CASE("lanes at the block's barrier and lanes in a shuffle don't wait for each other") {
    const auto image = kernel("if (thread_index() % 2)\n    barrier();\nelse\n    shuffle(1, 0);");
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const std::string message = failure(image, {.threads = 64}, {}, seed);
        CHECK_MESSAGE(contains(message, "barrier at test.cu:2"), message);
        CHECK_MESSAGE(contains(message, "shuffle at test.cu:4"), message);
    }
}

TEST_CASE("the same seed runs the threads in the same order, another one in another") {
    const auto image = kernel("args.words[1 + atomic_add(args.words, 1)] = static_cast<u32>(thread_index());");
    const auto order = [&](std::uint64_t seed) {
        std::vector<unsigned> words(65);
        run(image, {.threads = 64}, {.words = words.data()}, seed);
        return words;
    };
    CHECK(order(1) == order(1));
    CHECK(order(1) != order(2));
}

TEST_CASE("an emulator goes on after an error") {
    const auto bad = kernel("if (thread_index() == 40) return;\nbarrier();");
    const auto good = kernel("barrier(); args.words[thread_index()] = 7;");
    unsigned words[64] = {};
    failure(bad, {.threads = 64}, {});
    run(good, {.threads = 64}, {.words = words});
    CHECK(words[63] == 7);
}
