// What a plan knows of a batch that lies on the device.
#include <doctest/doctest.h>

#include "call/arrays.h"
#include "cuda/bounds.h"

namespace kvjit::rt {
namespace {

gen::KernelSpec attention() {
    return test::parse_spec("op=MultiHeadAttention,head_dim=64,group=1");
}

test::IndexArrays three_sequences() {
    return test::IndexArrays({attention(), {1, 5, 0}, {9, 11, 4}});
}

TEST_CASE("without a mirror nothing of the arrays is read, and bounds must be given") {
    kvjit_batch batch = three_sequences().batch;                                  // whose arrays are gone
    batch.seqstarts = reinterpret_cast<const std::int64_t*>(std::uintptr_t{64});  // as device pointers are: not ours
    batch.kvstarts = batch.seqstarts;
    const auto unknown = check_device_batch(attention(), batch, nullptr, {KVJIT_CHECK_FULL});
    REQUIRE(!unknown.has_value());
    CHECK(unknown.error().argument == "max_seqlen");
    batch.max_seqlen = 5;
    const auto half = check_device_batch(attention(), batch, nullptr, {KVJIT_CHECK_FULL});
    REQUIRE(!half.has_value());
    CHECK(half.error().argument == "max_kvlen");
    batch.max_kvlen = 11;
    const auto known = check_device_batch(attention(), batch, nullptr, {KVJIT_CHECK_FULL});
    REQUIRE(known.has_value());
    CHECK(known->max_seqlen == 5);
    CHECK(known->max_kvlen == 11);
    CHECK(known->rows.query == 0);
}

TEST_CASE("a mirror gives rows and, where the batch has none, bounds") {
    const test::IndexArrays arrays = three_sequences();
    kvjit_batch batch = arrays.batch;
    auto found = check_device_batch(attention(), batch, &batch, {KVJIT_CHECK_FULL});
    REQUIRE(found.has_value());
    CHECK(found->max_seqlen == 5);
    CHECK(found->max_kvlen == 11);
    CHECK(found->rows.query == 6);
    CHECK(found->rows.key == 24);
    batch.max_seqlen = 100;  // the lengths of later steps
    found = check_device_batch(attention(), batch, &batch, {KVJIT_CHECK_FULL});
    REQUIRE(found.has_value());
    CHECK(found->max_seqlen == 100);
}

TEST_CASE("a mirror that says something else, or is faulty, is refused") {
    test::IndexArrays arrays = three_sequences();
    const kvjit_batch batch = arrays.batch;
    kvjit_batch mirror = batch;
    mirror.num_heads = 4;
    const auto other = check_device_batch(attention(), batch, &mirror, {KVJIT_CHECK_FULL});
    REQUIRE(!other.has_value());
    CHECK(other.error().argument == "host_batch.num_heads");
    CHECK(other.error().value == 4);
    CHECK(other.error().limit == 2);
    mirror = batch;
    mirror.window_left = batch.window_left + 1;
    const auto window = check_device_batch(attention(), batch, &mirror, {KVJIT_CHECK_FULL});
    REQUIRE(!window.has_value());
    CHECK(window.error().argument == "host_batch.window_left");
    arrays.kvstarts[2] = 3;
    mirror = arrays.batch;
    const auto falling = check_device_batch(attention(), batch, &mirror, {KVJIT_CHECK_FULL});
    REQUIRE(!falling.has_value());
    CHECK(falling.error().argument == "kvstarts");
    CHECK(check_device_batch(attention(), batch, &mirror, {KVJIT_CHECK_NONE}).has_value());
}

}  // namespace
}  // namespace kvjit::rt
