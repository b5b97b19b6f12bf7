// Programs whose kvjit.h is older have shorter structs: nothing past them is written.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include "kvjit/kvjit.hpp"
#include "support/guarded_buffer.h"

namespace kvjit::test {
namespace {

/// The first kBytes of a T, in front of a page that can't be touched.
template <class T, std::size_t kBytes>
class ShortStruct {
public:
    T* get() { return reinterpret_cast<T*>(memory_.data()); }
    T* operator->() { return get(); }

private:
    GuardedBuffer memory_{kBytes, Guard::kAfter};
};

constexpr std::size_t kOlderSpec = offsetof(kvjit_spec, layout);
constexpr std::size_t kOlderStats = offsetof(kvjit_engine_stats, disk_seconds);

TEST_CASE("a spec of an older header is set up, parsed and printed in its own size") {
    ShortStruct<kvjit_spec, kOlderSpec> spec;
    kvjit_spec_init_sized(spec.get(), kOlderSpec);
    CHECK(spec->struct_size == kOlderSpec);
    CHECK(spec->head_dim == 128);
    CHECK(kvjit_spec_parse_sized("head_dim=64", spec.get(), kOlderSpec, nullptr) == KVJIT_OK);
    CHECK(spec->struct_size == kOlderSpec);
    CHECK(spec->head_dim == 64);
    std::string text;
    const auto append = [](void* to, const char* piece, std::size_t size) {
        static_cast<std::string*>(to)->append(piece, size);
    };
    CHECK(kvjit_spec_print(spec.get(), append, &text, nullptr) == KVJIT_OK);
    CHECK(text == "op=MultiHeadCacheAttention,head_dim=64");
}

TEST_CASE("a text with a field that the caller's spec has no room for is refused, and changes nothing") {
    ShortStruct<kvjit_spec, kOlderSpec> spec;
    kvjit_spec_init_sized(spec.get(), kOlderSpec);
    Error error;
    CHECK(kvjit_spec_parse_sized("head_dim=64,layout=L2HTD", spec.get(), kOlderSpec, error.get()) == KVJIT_BAD_SPEC);
    CHECK(error.argument() == std::string("layout"));
    CHECK(error.get()->value == kOlderSpec);
    CHECK(error.get()->limit == sizeof(kvjit_spec));
    CHECK(spec->head_dim == 128);
    CHECK(kvjit_spec_parse_sized("head_dim=64", spec.get(), 3, error.get()) == KVJIT_BAD_ARGUMENT);
    CHECK(error.argument() == std::string("spec.struct_size"));
    CHECK(spec->head_dim == 128);
}

TEST_CASE("a list's specs have the size of the caller's; none is handed over if one has no room") {
    const auto count = [](void* taken, std::int64_t, const kvjit_spec* spec) {
        CHECK(spec->struct_size == kOlderSpec);
        ++*static_cast<int*>(taken);
    };
    int taken = 0;
    CHECK(kvjit_spec_list_parse_sized("group={1..4}", 4, count, nullptr, &taken, kOlderSpec, nullptr) == KVJIT_OK);
    CHECK(taken == 4);
    Error error;
    CHECK(kvjit_spec_list_parse_sized("group=1\nlayout=L2HTD", 4, count, nullptr, &taken, kOlderSpec, error.get()) ==
          KVJIT_BAD_SPEC);
    CHECK(error.argument() == std::string("layout"));
    CHECK(kvjit_spec_list_parse_sized("group=1", 4, count, nullptr, &taken, 3, error.get()) == KVJIT_BAD_ARGUMENT);
    CHECK(error.argument() == std::string("spec.struct_size"));
    CHECK(taken == 4);
}

TEST_CASE("of a newer header's struct what the library doesn't know is 0, and it is refused where it is used") {
    struct Newer {
        kvjit_batch batch;
        std::int64_t more;
    } newer;
    newer.more = -1;
    kvjit_batch_init_sized(&newer.batch, sizeof newer);
    CHECK(newer.batch.struct_size == sizeof newer);
    CHECK(newer.batch.num_layers == 1);
    CHECK(newer.more == 0);
}

TEST_CASE("statistics and errors are written as far as the caller's struct goes") {
    ShortStruct<kvjit_engine_stats, kOlderStats> stats;
    kvjit_engine_stats_init_sized(stats.get(), kOlderStats);
    const Engine engine = *Engine::create();
    kvjit_engine_get_stats(engine.get(), stats.get());
    CHECK(stats->struct_size == kOlderStats);
    CHECK(stats->compiles == 0);
    kvjit_error not_set_up{};
    kvjit_spec spec;
    CHECK(kvjit_spec_parse("head_dim=7", &spec, &not_set_up) == KVJIT_BAD_SPEC);
    CHECK(not_set_up.message[0] == '\0');
}

}  // namespace
}  // namespace kvjit::test
