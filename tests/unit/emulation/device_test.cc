// The emulator as a device: memory, limits of launches, several launches at once.
#include <thread>

#include "support.h"

using namespace kvjit;
using test::contains;
using test::kernel;

TEST_CASE("memory: aligned, filled with NaN, copied both ways") {
    const auto device = test::device();
    const auto memory = device->allocate(1000);
    REQUIRE(memory.has_value());
    CHECK(reinterpret_cast<std::uintptr_t>(*memory) % 256 == 0);
    float value = 0;
    CHECK(device->download(&value, *memory, sizeof(value), nullptr).has_value());
    CHECK(value != value);
    const float one = 1;
    CHECK(device->upload(*memory, &one, sizeof(one), rt::kAtOnce).has_value());
    CHECK(device->download(&value, *memory, sizeof(value), nullptr).has_value());
    CHECK(value == 1);
    CHECK(device->zero(*memory, 1000, rt::kAtOnce).has_value());
    CHECK(device->download(&value, *memory, sizeof(value), nullptr).has_value());
    CHECK(value == 0);
    CHECK(device->synchronize(nullptr).has_value());
    CHECK(device->multiprocessors() > 0);
    device->release(*memory);
}

// AddressSanitizer stops the process instead.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST_CASE("memory that isn't there is an error" * doctest::skip(kSanitized)) {
    const auto too_much = test::device()->allocate(std::size_t{1} << 60);
    REQUIRE_FALSE(too_much.has_value());
    CHECK(too_much.error().status == KVJIT_OUT_OF_MEMORY);
}

TEST_CASE("a launch beyond what GPUs take is an error that names argument and limit") {
    const auto image = kernel("args.words[0] = 1;");
    struct {
        rt::Grid grid;
        std::string_view argument;
    } const cases[] = {
        {{.y = 65536, .threads = 32}, "grid.y is 65536"},
        {{.x = 0x80000000, .threads = 32}, "grid.x is 2147483648"},
        {{.threads = 1056}, "grid.threads is 1056; it may be up to 1024"},
        {{.threads = 33}, "grid.threads is 33; it is a multiple of 32"},
        {{.threads = 0}, "grid.threads is 0"},
        {{.threads = 32, .shared_bytes = 232449}, "grid.shared_bytes is 232449; it may be up to 232448"},
    };
    for (const auto& c : cases) {
        const std::string message = test::failure(image, c.grid, {});
        CHECK_MESSAGE(contains(message, c.argument), message);
    }
    const std::vector<char> large(4097);
    const auto result = test::device()->launch(image->entry(), {.threads = 32}, large.data(), 4097, nullptr);
    REQUIRE_FALSE(result.has_value());
    CHECK(contains(result.error().message, "args_bytes is 4097"));
}

TEST_CASE("an empty grid is no launch") {
    const auto image = kernel("args.words[0] = 1;");
    unsigned word = 0;
    test::run(image, {.x = 0, .threads = 32}, {.words = &word});
    test::run(image, {.y = 0, .threads = 32}, {.words = &word});
    CHECK(word == 0);
}

TEST_CASE("all the shared memory that a GPU has, to its last byte") {
    const auto image = kernel(R"(
        auto& x = shared_memory<u8[232448]>();
        for (i32 i = thread_index(); i < 232448; i += 1024) x[i] = static_cast<u8>(i);
        barrier();
        if (thread_index() == 0) args.words[0] = x[232447] + x[1] * 1000u;
    )");
    unsigned word = 0;
    test::run(image, {.threads = 1024, .shared_bytes = 232448}, {.words = &word});
    CHECK(word == 1000 + 232447 % 256);
}

TEST_CASE("the seed decides on the order of blocks") {
    const auto image = kernel("if (thread_index() == 0) args.words[1 + atomic_add(args.words, 1)] = u32(block_x());");
    const auto order = [&](std::uint64_t seed) {
        std::vector<unsigned> words(1 + 12);
        test::run(image, {.x = 12, .threads = 32}, {.words = words.data()}, seed);
        return words;
    };
    CHECK(order(3) == order(3));
    CHECK(order(3) != order(4));
    std::vector<unsigned> seen(12);
    const std::vector<unsigned> ran = order(5);
    CHECK(ran[0] == 12);
    for (std::size_t i = 1; i < ran.size(); ++i) ++seen.at(ran[i]);
    CHECK(seen == std::vector<unsigned>(12, 1));
}

TEST_CASE("launches of several threads run at once") {
    const auto image = kernel(R"(
        auto& x = shared_memory<u32[128]>();
        u32 sum = 0;
        for (i64 i = 0; i < 20; ++i) {
            x[thread_index()] = static_cast<u32>(args.number);
            barrier();
            sum += x[127 - thread_index()];
            barrier();
        }
        args.words[block_x() * 128 + thread_index()] = sum;
    )");
    const auto device = test::device();
    std::vector<std::vector<unsigned>> words(4, std::vector<unsigned>(3 * 128));
    std::vector<std::thread> threads;
    for (long t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            const test::Args args{.words = words[t].data(), .number = t};
            for (int i = 0; i < 3; ++i) {
                static_cast<void>(device->launch(image->entry(), {.x = 3, .threads = 128, .shared_bytes = 512}, &args,
                                                 sizeof(args), nullptr));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (unsigned t = 0; t < 4; ++t) CHECK(words[t] == std::vector<unsigned>(3 * 128, 20 * t));
}

TEST_CASE("a thread that waits for another block's write is an error, not a hang") {
    const auto image = kernel(R"(auto* flag = static_cast<volatile u32*>(args.words);
if (block_x() == 0) {
    while (*flag == 0) {
    }
}
if (thread_index() == 0) *flag = 1;)");
    unsigned flag = 0;
    const std::string message = test::failure(image, {.threads = 32}, {.words = &flag});
    CHECK_MESSAGE(contains(message, "without meeting others"), message);
    CHECK_MESSAGE(contains(message, "test.cu:3"), message);
}
