#include <doctest/doctest.h>

#include <cstdint>
#include <string>
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
    std::vector<std::int64_t> shape(KVJIT_MAX_RANK + 1, 1);
    DLTensor from = tensor(data, shape);
    const auto rank = kvjit::from_dlpack(from);
    CHECK(rank.error().status() == KVJIT_BAD_SHAPE);
    const std::string most = std::to_string(shape.size() - 1), more = std::to_string(shape.size());
    CHECK(rank.error().message() == "ndim is " + more + "; it takes 0 to " + most + " axes");
    from.ndim = 1;
    from.dtype = {kDLInt, 8, 1};
    CHECK(kvjit::from_dlpack(from)->dtype == KVJIT_I8);
    from.dtype = {kDLBfloat, 16, 1};
    CHECK(kvjit::from_dlpack(from)->dtype == KVJIT_BF16);
    from.shape = nullptr;
    CHECK(kvjit::from_dlpack(from).error().status() == KVJIT_BAD_ARGUMENT);
    CHECK(kvjit::from_dlpack(from).error().argument() == std::string("shape"));
    from.ndim = 0;
    CHECK(kvjit::from_dlpack(from)->rank == 0);
}

TEST_CASE("types without a kvjit_dtype are refused") {
    std::vector<float> data(1);
    std::vector<std::int64_t> shape(1, 1);
    DLTensor from = tensor(data, shape);
    const DLDataType refused[] = {{kDLFloat, 64, 1}, {kDLFloat, 32, 4}, {kDLBfloat, 32, 1}, {kDLFloat, 8, 1},
                                  {kDLUInt, 32, 1},  {kDLInt, 16, 1},   {kDLComplex, 64, 1}};
    for (const DLDataType& type : refused) {
        CAPTURE(int{type.code});
        CAPTURE(int{type.bits});
        from.dtype = type;
        const auto view = kvjit::from_dlpack(from);
        REQUIRE(!view);
        CHECK(view.error().status() == KVJIT_BAD_DTYPE);
        CHECK(view.error().value() == type.bits);
    }
}

TEST_CASE("a device's kernels get the memory that it reaches, and no other") {
    std::vector<float> data(4);
    std::vector<std::int64_t> shape(1, 4);
    DLTensor from = tensor(data, shape);
    const DLDevice cpu{kDLCPU, 0}, gpu0{kDLCUDA, 0}, gpu1{kDLCUDA, 1};
    const DLDevice pinned{kDLCUDAHost, 0}, managed{kDLCUDAManaged, 1}, rocm{kDLROCM, 0};
    const struct {
        DLDevice memory;
        bool for_cpu, for_gpu0, for_gpu1;
    } rows[] = {{cpu, true, false, false},  {gpu0, false, true, false},  {gpu1, false, false, true},
                {pinned, true, true, true}, {managed, true, true, true}, {rocm, false, false, false}};
    for (const auto& row : rows) {
        CAPTURE(static_cast<int>(row.memory.device_type));
        CAPTURE(row.memory.device_id);
        from.device = row.memory;
        CHECK(kvjit::from_dlpack(from).has_value() == row.for_cpu);
        CHECK(kvjit::from_dlpack(from, cpu).has_value() == row.for_cpu);
        CHECK(kvjit::from_dlpack(from, gpu0).has_value() == row.for_gpu0);
        CHECK(kvjit::from_dlpack(from, gpu1).has_value() == row.for_gpu1);
        CHECK(!kvjit::from_dlpack(from, rocm));
        CHECK(!kvjit::from_dlpack(from, pinned));
    }
}

TEST_CASE("a view of a GPU's memory has its address, shape and strides; nothing is read") {
    std::int64_t shape[] = {2, 3}, strides[] = {8, 1};
    DLTensor from{};
    from.data = reinterpret_cast<void*>(std::uintptr_t{0x7f0000000000});  // of no process
    from.device = {kDLCUDA, 3};
    from.ndim = 2;
    from.dtype = {kDLFloat, 16, 1};
    from.shape = shape;
    from.strides = strides;
    from.byte_offset = 32;
    const auto view = kvjit::from_dlpack(from, {kDLCUDA, 3});
    REQUIRE(view);
    CHECK(view->data == reinterpret_cast<void*>(std::uintptr_t{0x7f0000000020}));
    CHECK(view->dtype == KVJIT_F16);
    CHECK(view->shape[1] == 3);
    CHECK(view->strides[0] == 8);
}

TEST_CASE("memory elsewhere is refused with where it is and where it should be") {
    std::vector<float> data(1);
    std::vector<std::int64_t> shape(1, 1);
    DLTensor from = tensor(data, shape);
    const auto on_host = kvjit::from_dlpack(from, {kDLCUDA, 0});
    REQUIRE(!on_host);
    CHECK(on_host.error().status() == KVJIT_BAD_ARGUMENT);
    CHECK(on_host.error().argument() == std::string("device.device_type"));
    CHECK(on_host.error().value() == kDLCPU);
    CHECK(on_host.error().limit() == kDLCUDA);
    CHECK(on_host.error().message() ==
          std::string("device.device_type is 1; for kernels on CUDA, it takes kDLCUDA (2), "
                      "kDLCUDAHost (3) or kDLCUDAManaged (13)"));
    from.device = {kDLCUDA, 1};
    const auto on_other = kvjit::from_dlpack(from, {kDLCUDA, 0});
    REQUIRE(!on_other);
    CHECK(on_other.error().argument() == std::string("device.device_id"));
    CHECK(on_other.error().message() == std::string("device.device_id is 1; the kernels run on GPU 0"));
    CHECK(kvjit::from_dlpack(from, {kDLMetal, 0}).error().argument() == std::string("runs_on.device_type"));
}
