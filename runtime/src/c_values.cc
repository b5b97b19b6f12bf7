// kvjit.h, plain values: errors, specs, views, and the structs as their init functions leave them.
#include <string>

#include "c_struct.h"
#include "generator/spec.h"
#include "kvjit/kvjit.h"

using namespace kvjit;

namespace {

template <class T>
void init(T* value) {
    if (value != nullptr) *value = rt::defaults<T>();
}

}  // namespace

void kvjit_spec_init(kvjit_spec* spec) {
    init(spec);
}
void kvjit_engine_options_init(kvjit_engine_options* options) {
    init(options);
}
void kvjit_engine_stats_init(kvjit_engine_stats* stats) {
    init(stats);
}
void kvjit_executor_init(kvjit_executor* executor) {
    init(executor);
}
void kvjit_batch_init(kvjit_batch* batch) {
    init(batch);
}
void kvjit_plan_options_init(kvjit_plan_options* options) {
    init(options);
}
void kvjit_tensors_init(kvjit_tensors* tensors) {
    init(tensors);
}

const char* kvjit_status_name(kvjit_status status) {
    switch (status) {
        case KVJIT_OK:
            return "KVJIT_OK";
        case KVJIT_BAD_SPEC:
            return "KVJIT_BAD_SPEC";
        case KVJIT_BAD_TARGET:
            return "KVJIT_BAD_TARGET";
        case KVJIT_BAD_ARGUMENT:
            return "KVJIT_BAD_ARGUMENT";
        case KVJIT_BAD_DTYPE:
            return "KVJIT_BAD_DTYPE";
        case KVJIT_BAD_SHAPE:
            return "KVJIT_BAD_SHAPE";
        case KVJIT_BAD_INDEX:
            return "KVJIT_BAD_INDEX";
        case KVJIT_NOT_FOUND:
            return "KVJIT_NOT_FOUND";
        case KVJIT_COMPILER_MISSING:
            return "KVJIT_COMPILER_MISSING";
        case KVJIT_COMPILE_FAILED:
            return "KVJIT_COMPILE_FAILED";
        case KVJIT_BAD_FILE:
            return "KVJIT_BAD_FILE";
        case KVJIT_OUT_OF_MEMORY:
            return "KVJIT_OUT_OF_MEMORY";
        case KVJIT_CUDA_ERROR:
            return "KVJIT_CUDA_ERROR";
        case KVJIT_INTERNAL:
            return "KVJIT_INTERNAL";
    }
    return "unknown status";
}

void kvjit_error_init(kvjit_error* error) {
    if (error == nullptr) return;
    error->struct_size = sizeof *error;
    error->status = KVJIT_OK;
    error->value = 0;
    error->limit = 0;
    error->sequence = -1;
    // Not the rest of the texts: this is on the path of every successful call.
    error->argument[0] = '\0';
    error->message[0] = '\0';
}

kvjit_status kvjit_spec_parse(const char* text, kvjit_spec* spec, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(text, "text"); !given) return given;
        if (auto given = rt::not_null(spec, "spec"); !given) return given;
        const gen::Result<gen::KernelSpec> parsed = gen::parse_spec(text);
        if (!parsed) return std::unexpected(parsed.error());
        *spec = *parsed;
        return {};
    });
}

kvjit_status kvjit_spec_print(const kvjit_spec* spec, kvjit_sink sink, void* context, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        const gen::Result<gen::KernelSpec> read = rt::read_struct(spec, "spec");
        if (!read) return std::unexpected(read.error());
        if (auto valid = gen::validate_spec(*read); !valid) return valid;
        if (auto given = rt::not_null(reinterpret_cast<const void*>(sink), "sink"); !given) return given;
        const std::string text = gen::print_spec(*read);
        sink(context, text.data(), text.size());
        return {};
    });
}

void kvjit_spec_fields(void (*row)(void*, const char*, const char*, const char*, const char*), void* context) {
    if (row == nullptr) return;
    const gen::KernelSpec defaults = gen::default_spec();
    for (const gen::Field& field : gen::spec_fields()) {
        row(context, std::string(field.name).c_str(), std::string(field.takes).c_str(), field.print(defaults).c_str(),
            std::string(field.help).c_str());
    }
}

kvjit_tensor kvjit_tensor_contiguous(void* data, kvjit_dtype dtype, int32_t rank, const int64_t* shape) {
    kvjit_tensor tensor{};
    if (rank < 0 || rank > KVJIT_MAX_RANK || (rank > 0 && shape == nullptr)) return tensor;
    tensor.data = data;
    tensor.dtype = dtype;
    tensor.rank = rank;
    std::int64_t stride = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
        tensor.shape[axis] = shape[axis];
        tensor.strides[axis] = stride;
        // A product that overflows is left to the checks, which see the shape.
        if (__builtin_mul_overflow(stride, shape[axis], &stride)) stride = 0;
    }
    return tensor;
}
