// The C entry points of kvjit.h for plain values: errors, specs, views, and the init functions of structs.
#include <cstring>
#include <string>
#include <vector>

#include "c_struct.h"
#include "check/fault.h"
#include "generator/identity.h"
#include "generator/layouts.h"
#include "generator/program.h"
#include "generator/spec.h"
#include "generator/spec_list.h"
#include "kvjit/kvjit.h"

using namespace kvjit;

namespace {

/// Fields that the caller's older header lacks must have their defaults, since they can't be returned.
gen::Result<void> fields_fit(const gen::KernelSpec& spec, std::size_t size) {
    gen::KernelSpec known = gen::default_spec();
    std::memcpy(&known, &spec, size);
    for (const gen::Field& field : gen::spec_fields()) {
        if (field.print(spec) == field.print(known)) continue;
        return gen::fail(KVJIT_BAD_SPEC, std::string(field.name),
                         std::string(field.name) + " is " + field.print(spec) + "; this program's kvjit_spec, of " +
                             std::to_string(size) + " bytes, has no room for it, so it takes " + field.print(known),
                         static_cast<std::int64_t>(size), sizeof spec);
    }
    return {};
}

/// Fills a caller's struct of `size` bytes, if it has room for all values that are not defaults.
gen::Result<void> hand_over(const gen::KernelSpec& made, kvjit_spec* to, std::size_t size, std::string_view name) {
    if (auto right = rt::check_size<kvjit_spec>(size, name); !right) return right;
    if (auto fits = fields_fit(made, size); !fits) return fits;
    rt::write_struct(to, size, made);
    return {};
}

/// The list's specs in the caller's size.
gen::Result<std::vector<kvjit_spec>> sized_specs(const gen::SpecList& list, std::size_t size) {
    std::vector<kvjit_spec> specs(list.specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
        if (auto handed = hand_over(list.specs[i].spec, &specs[i], size, "spec"); !handed) {
            return std::unexpected(handed.error());
        }
    }
    return specs;
}

}  // namespace

void kvjit_spec_init_sized(kvjit_spec* spec, size_t size) {
    rt::init_struct(spec, size);
}
void kvjit_engine_options_init_sized(kvjit_engine_options* options, size_t size) {
    rt::init_struct(options, size);
}
void kvjit_engine_stats_init_sized(kvjit_engine_stats* stats, size_t size) {
    rt::init_struct(stats, size);
}
void kvjit_prepare_options_init_sized(kvjit_prepare_options* options, size_t size) {
    rt::init_struct(options, size);
}
void kvjit_executor_init_sized(kvjit_executor* executor, size_t size) {
    rt::init_struct(executor, size);
}
void kvjit_batch_init_sized(kvjit_batch* batch, size_t size) {
    rt::init_struct(batch, size);
}
void kvjit_plan_options_init_sized(kvjit_plan_options* options, size_t size) {
    rt::init_struct(options, size);
}
void kvjit_tensors_init_sized(kvjit_tensors* tensors, size_t size) {
    rt::init_struct(tensors, size);
}
void kvjit_relayout_init_sized(kvjit_relayout* relayout, size_t size) {
    rt::init_struct(relayout, size);
}

const char* kvjit_version() {
    return KVJIT_VERSION;
}
int32_t kvjit_version_number() {
    return KVJIT_VERSION_NUMBER;
}

size_t kvjit_struct_size(const char* name) {
    for (const rt::StructFields& fields : rt::kStructs) {
        if (name != nullptr && std::strcmp(fields.name(), name) == 0) return fields.bytes;
    }
    return 0;
}

void kvjit_struct_fields(void (*row)(void*, const char*, const char*, const char*, size_t, size_t), void* context) {
    if (row == nullptr) return;
    for (const rt::StructFields& fields : rt::kStructs) {
        for (std::size_t i = 0; i < fields.words.size(); ++i) {
            const rt::FieldWords& words = fields.words[i];
            const rt::FieldPlace& place = fields.places[i];
            row(context, fields.name(), words.name.c_str(), words.type.c_str(), place.begin, place.end - place.begin);
        }
    }
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

void kvjit_error_init_sized(kvjit_error* error, size_t size) {
    if (error == nullptr || size < rt::kErrorBytes) return;
    error->struct_size = static_cast<std::uint32_t>(size);
    error->status = KVJIT_OK;
    error->value = 0;
    error->limit = 0;
    error->sequence = -1;
    // Only the first bytes of the texts: every successful call runs this.
    error->argument[0] = '\0';
    error->message[0] = '\0';
}

kvjit_status kvjit_spec_parse_sized(const char* text, kvjit_spec* spec, size_t size, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(text, "text"); !given) return given;
        if (auto given = rt::not_null(spec, "spec"); !given) return given;
        const gen::Result<gen::KernelSpec> parsed = gen::parse_spec(text);
        if (!parsed) return std::unexpected(parsed.error());
        return hand_over(*parsed, spec, size, "spec");
    });
}

kvjit_status kvjit_spec_for_op_sized(const kvjit_spec* spec, kvjit_op op, kvjit_spec* result, size_t size,
                                     kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(result, "result"); !given) return given;
        const gen::Result<gen::KernelSpec> read = rt::read_struct(spec, "spec");
        if (!read) return std::unexpected(read.error());
        const gen::Result<gen::KernelSpec> made = gen::spec_for_op(*read, op);
        if (!made) return std::unexpected(made.error());
        return hand_over(*made, result, size, "result");
    });
}

kvjit_status kvjit_relayout_spec_sized(const kvjit_spec* from, const kvjit_spec* to, kvjit_spec* result, size_t size,
                                       kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(result, "result"); !given) return given;
        const gen::Result<gen::KernelSpec> source = rt::read_struct(from, "from");
        if (!source) return std::unexpected(source.error());
        const gen::Result<gen::KernelSpec> destination = rt::read_struct(to, "to");
        if (!destination) return std::unexpected(destination.error());
        const gen::Result<gen::KernelSpec> made = gen::relayout_spec(*source, *destination);
        if (!made) return std::unexpected(made.error());
        return hand_over(*made, result, size, "result");
    });
}

kvjit_status kvjit_spec_print(const kvjit_spec* spec, kvjit_sink sink, void* context, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        const gen::Result<gen::KernelSpec> read = rt::read_struct(spec, "spec");
        if (!read) return std::unexpected(read.error());
        if (auto valid = gen::validate_spec(*read); !valid) return valid;
        if (auto given = rt::has_sink(sink); !given) return given;
        const std::string text = gen::print_spec(*read);
        sink(context, text.data(), text.size());
        return {};
    });
}

kvjit_status kvjit_identity_diff(const char* before, const char* after, kvjit_sink sink, void* context,
                                 kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(before, "before"); !given) return given;
        if (auto given = rt::not_null(after, "after"); !given) return given;
        if (auto given = rt::has_sink(sink); !given) return given;
        const gen::Result<std::string> text = gen::diff_stages(before, after);
        if (!text) return std::unexpected(text.error());
        sink(context, text->data(), text->size());
        return {};
    });
}

kvjit_status kvjit_spec_list_parse_sized(const char* text, int64_t max_combinations,
                                         void (*take)(void*, int64_t, const kvjit_spec*),
                                         void (*left_out)(void*, int64_t, const char*, const char*), void* context,
                                         size_t size, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(text, "text"); !given) return given;
        if (auto given = rt::not_null(reinterpret_cast<const void*>(take), "take"); !given) return given;
        if (auto right = rt::check_size<kvjit_spec>(size, "spec"); !right) return right;
        if (max_combinations < 1) {
            return rt::refuse(KVJIT_BAD_ARGUMENT, "max_combinations", max_combinations, 1, "it takes at least 1");
        }
        const gen::Result<gen::SpecList> list = gen::parse_spec_list(text, max_combinations);
        if (!list) return std::unexpected(list.error());
        const gen::Result<std::vector<kvjit_spec>> specs = sized_specs(*list, size);
        if (!specs) return std::unexpected(specs.error());
        for (std::size_t i = 0; i < specs->size(); ++i) take(context, list->specs[i].line, &(*specs)[i]);
        for (const gen::SpecList::LeftOut& out : list->left_out) {
            if (left_out != nullptr) {
                left_out(context, out.line, out.combination.c_str(), out.reason.message.c_str());
            }
        }
        return {};
    });
}

void kvjit_spec_fields(void (*row)(void*, const char*, const char*, const char*, const char*), void* context) {
    if (row == nullptr) return;
    rt::attempt([&] {
        const gen::KernelSpec defaults = gen::default_spec();
        for (const gen::Field& field : gen::spec_fields()) {
            row(context, std::string(field.name).c_str(), std::string(field.takes).c_str(),
                field.print(defaults).c_str(), std::string(field.help).c_str());
        }
    });
}

void kvjit_spec_layouts(void (*row)(void*, const char*, const char*, const char*, const char*), void* context) {
    if (row == nullptr) return;
    rt::attempt([&] {
        for (const gen::NamedLayout& named : gen::kNamedLayouts) {
            row(context, std::string(named.name).c_str(), std::string(named.order).c_str(),
                std::string(named.sets).c_str(), std::string(named.users).c_str());
        }
    });
}

void kvjit_program_list(void (*row)(void*, uint32_t, const char*), void* context) {
    if (row == nullptr) return;
    rt::attempt([&] {
        for (const gen::ProgramInfo& info : gen::programs()) row(context, info.bit, std::string(info.label).c_str());
    });
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
        // A product that overflows is found by the checks, which see the shape.
        if (__builtin_mul_overflow(stride, shape[axis], &stride)) stride = 0;
    }
    return tensor;
}
