// Asynchronous copies and plain accesses of memory.
#include "support.h"

using namespace kvjit;
using test::contains;
using test::failure;
using test::kernel;
using test::run;

TEST_CASE("copies arrive once their group is waited for, zeros where not valid") {
    const auto image = kernel(R"(
        struct alignas(16) Shared { u32 a[64][4]; u32 b[64][2]; u32 c[64]; };
        auto& shared = shared_memory<Shared>();
        const i32 t = thread_index();
        const u32* in = static_cast<const u32*>(args.in);
        copy_async<16>(shared.a[t], in + 4 * t, true);
        commit_copies();
        copy_async<8>(shared.b[t], in + 2 * t, t % 2 == 0);
        copy_async<4>(&shared.c[t], nullptr, false);
        commit_copies();
        commit_copies();
        wait_copies<2>();
        barrier();
        const i32 other = 63 - t;
        u32* out = args.words + 8 * t;
        for (i32 i = 0; i < 4; ++i) out[i] = shared.a[other][i];
        wait_copies<0>();
        barrier();
        for (i32 i = 0; i < 2; ++i) out[4 + i] = shared.b[other][i];
        out[6] = shared.c[other];
    )");
    std::vector<unsigned> in(256), out(512);
    for (unsigned i = 0; i < 256; ++i) in[i] = 1000 + i;
    run(image, {.threads = 64, .shared_bytes = 64 * 28}, {.in = in.data(), .words = out.data()});
    for (unsigned t = 0; t < 64; ++t) {
        const unsigned other = 63 - t;
        for (unsigned i = 0; i < 4; ++i) CHECK(out[8 * t + i] == 1000 + 4 * other + i);
        for (unsigned i = 0; i < 2; ++i) CHECK(out[8 * t + 4 + i] == (other % 2 == 0 ? 1000 + 2 * other + i : 0));
        CHECK(out[8 * t + 6] == 0);
    }
}

TEST_CASE("loads and stores of 4, 8 and 16 bytes") {
    alignas(16) unsigned in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {};
    const auto image = kernel(R"(
        if (thread_index() != 0) return;
        const u32* in = static_cast<const u32*>(args.in);
        u32 one[1], two[2], four[4];
        load4(one, in);
        load8(two, in + 2);
        load16(four, in + 4);
        store4(args.words, one);
        store8(args.words + 2, two);
        store16(args.words + 4, four);
    )");
    run(image, {.threads = 32}, {.in = in, .words = out});
    const unsigned expected[8] = {1, 0, 3, 4, 5, 6, 7, 8};
    for (int i = 0; i < 8; ++i) CHECK(out[i] == expected[i]);
}

TEST_CASE("shared memory larger than the launch's is an error") {
    const auto image = kernel("\nshared_memory<u32[64]>()[thread_index()] = 1;");
    const std::string message = failure(image, {.threads = 32, .shared_bytes = 252}, {});
    CHECK_MESSAGE(contains(message, "shared_memory at test.cu:2 is of a type of 256 bytes"), message);
    CHECK_MESSAGE(contains(message, "252"), message);
    run(image, {.threads = 32, .shared_bytes = 256}, {});
}
