#include <doctest/doctest.h>

#include <vector>

#include "kvjit/dlpack.hpp"

namespace {

DLTensor tensor(std::vector<float>& data, std::vector<std::int64_t>& shape) {
    DLTensor made{};
    made.data = data.data();
    made.device = {kDLCPU, 0};
    made.ndim = static_cast<int>(shape.size());
    made.dtype = {kDLFloat, 32, 1};
    made.shape = shape.data();
    return made;
}

}  // namespace

TEST_CASE("a DLPack tensor becomes a view with its shape, strides and offset") {
    std::vector<float> data(24);
    std::vector<std::int64_t> shape = {2, 3, 4}, strides = {4, 8, 1};
    DLTensor from = tensor(data, shape);
    const auto row_major = kvjit::from_dlpack(from);
    REQUIRE(row_major.has_value());
    CHECK(row_major->data == data.data());
    CHECK(row_major->dtype == KVJIT_F32);
    CHECK(row_major->rank == 3);
    CHECK(row_major->strides[0] == 12);
    from.strides = strides.data();
    from.byte_offset = 16;
    const auto strided = kvjit::from_dlpack(from);
    REQUIRE(strided.has_value());
    CHECK(strided->data == data.data() + 4);
    CHECK(strided->shape[1] == 3);
    CHECK(strided->strides[1] == 8);
}

TEST_CASE("what a view can't be of is refused by name") {
    std::vector<float> data(1);
    std::vector<std::int64_t> shape(7, 1);
    DLTensor from = tensor(data, shape);
    CHECK(kvjit::from_dlpack(from).error().status() == KVJIT_BAD_SHAPE);
    from.ndim = 1;
    from.dtype = {kDLFloat, 64, 1};
    CHECK(kvjit::from_dlpack(from).error().status() == KVJIT_BAD_DTYPE);
    from.dtype = {kDLFloat, 32, 4};
    CHECK(kvjit::from_dlpack(from).error().status() == KVJIT_BAD_DTYPE);
    from.dtype = {kDLInt, 8, 1};
    CHECK(kvjit::from_dlpack(from)->dtype == KVJIT_I8);
    from.device.device_type = kDLCUDA;
    const auto elsewhere = kvjit::from_dlpack(from);
    CHECK(elsewhere.error().status() == KVJIT_BAD_ARGUMENT);
    CHECK(std::string(elsewhere.error().message()).find("device") != std::string::npos);
}
