// Kernels, and the plans that run them. Part of kvjit.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kvjit/cpp/batch.hpp"
#include "kvjit/cpp/tensor.hpp"

namespace kvjit {

/// See kvjit_plan_options.
struct PlanOptions : kvjit_plan_options {
    PlanOptions() { kvjit_plan_options_init(this); }
    /// Of a program that has the C struct.
    PlanOptions(const kvjit_plan_options& options) : kvjit_plan_options(options) {}

    /// The same batch with its arrays in host memory, which a plan on a GPU checks; its own arrays are held against it
    /// as those of any Batch, with arguments that begin with "host_batch.". It stays until the plan is made.
    PlanOptions& set_host_batch(const Batch& batch) {
        host_batch = &batch;
        host_batch_ = detail::PointedBatch(batch);
        return *this;
    }
    PlanOptions& set_host_batch(const Batch&&) = delete;

    /// Batch::check of the host_batch, as far as that was set so.
    Result<void> check(detail::StartsType& type) const { return host_batch_.check(host_batch, type, "host_batch."); }

private:
    detail::PointedBatch host_batch_;
};

/// One step's batch, checked and split; runs on every layer. Move-only; one thread at a time.
class Plan {
public:
    /// Takes over.
    explicit Plan(kvjit_plan* raw) : handle_(raw) {}

    /// See kvjit_run. A Tensor whose container has another length than its extents is KVJIT_BAD_SHAPE.
    Result<void> run(const kvjit_tensors& tensors, std::int64_t layer_idx = 0) {
        return detail::explain(detail::call(kvjit_run, get(), &tensors, layer_idx), &tensors);
    }
    /// Of a relayout's plan. See kvjit_relayout_run.
    Result<void> relayout(const kvjit_tensors& from, const kvjit_tensors& to, std::int64_t from_layer = 0,
                          std::int64_t to_layer = 0) {
        auto done = detail::call(kvjit_relayout_run, get(), &from, from_layer, &to, to_layer);
        return detail::explain(std::move(done), &from, &to);
    }
    /// Waits for the runs so far; see kvjit_plan_synchronize.
    Result<void> synchronize() { return detail::call(kvjit_plan_synchronize, get()); }
    std::size_t workspace_bytes() const { return kvjit_plan_workspace_bytes(get()); }
    std::string describe() const {
        detail::Told out;
        kvjit_plan_describe(get(), detail::callback(out), &out);
        return out.text;
    }
    kvjit_plan* get() const { return handle_.get(); }

private:
    detail::Handle<kvjit_plan, kvjit_plan_release> handle_;
};

/// The image of one of a kernel's programs. See kvjit_image_info.
struct ImageInfo {
    kvjit_programs program;
    kvjit_origin origin;
    bool is_loaded;
    int revision;
    std::int64_t object_bytes;
    std::string name, variant, target, identity, place;
    std::int64_t block_threads, shared_bytes;
};

/// A cheap, thread-safe, reference-counted handle.
class Kernel {
public:
    /// Takes over. `starts_type`: of the kernel's spec, which a Batch's arrays are held against; KVJIT_AUTO: unknown,
    /// so that they are held against each other.
    explicit Kernel(kvjit_kernel* raw, std::int32_t starts_type = KVJIT_AUTO)
        : handle_(raw), starts_type_(starts_type) {}
    Kernel(const Kernel& other) : Kernel(kvjit_kernel_retain(other.get()), other.starts_type_) {}
    Kernel(Kernel&&) = default;
    Kernel& operator=(Kernel other) {
        handle_ = std::move(other.handle_);
        starts_type_ = other.starts_type_;
        return *this;
    }

    Result<void> prepare(std::uint32_t programs = KVJIT_ALL_PROGRAMS) const {
        return detail::call(kvjit_kernel_prepare, get(), programs);
    }
    /// See kvjit_plan_create, and for the lengths and types of arrays Batch.
    Result<Plan> plan(const Batch& batch, const PlanOptions& options = {}) const {
        detail::StartsType type(starts_type_);
        if (Result<void> fits = batch.check(type); !fits) return fits.error();
        return make_plan(batch, options, type);
    }
    Result<Plan> plan(const kvjit_batch& batch, const PlanOptions& options = {}) const {
        return make_plan(batch, options, detail::StartsType(starts_type_));
    }
    /// Of a kernel of op Relayout. See kvjit_relayout_plan_create.
    Result<Plan> plan(const Relayout& relayout, const PlanOptions& options = {}) const {
        detail::StartsType type(starts_type_);
        if (Result<void> fits = relayout.check(type); !fits) return fits.error();
        return plan(static_cast<const kvjit_relayout&>(relayout), options);
    }
    Result<Plan> plan(const kvjit_relayout& relayout, const PlanOptions& options = {}) const {
        auto plan = detail::make<Plan>(kvjit_relayout_plan_create, get(), &relayout, &options);
        return detail::explain(std::move(plan), relayout.from, relayout.to);
    }
    Result<std::string> emit(kvjit_stage stage, std::uint32_t programs = KVJIT_ALL_PROGRAMS) const {
        return detail::text_of(kvjit_kernel_emit, get(), programs, stage);
    }
    /// What each of the programs runs, or would run, and where that is from. See kvjit_kernel_images.
    Result<std::vector<ImageInfo>> images(std::uint32_t programs = KVJIT_ALL_PROGRAMS) const {
        std::vector<ImageInfo> all;
        auto take = [&](const kvjit_image_info* info) {
            all.push_back({static_cast<kvjit_programs>(info->program), static_cast<kvjit_origin>(info->origin),
                           info->is_loaded != 0, info->revision, info->object_bytes, info->name, info->variant,
                           info->target, info->identity, info->place, info->block_threads, info->shared_bytes});
        };
        auto told = detail::call(kvjit_kernel_images, get(), programs, detail::callback(take), &take);
        if (!told) return told.error();
        return all;
    }
    kvjit_kernel* get() const { return handle_.get(); }

private:
    Result<Plan> make_plan(const kvjit_batch& batch, const PlanOptions& options, detail::StartsType type) const {
        if (Result<void> fits = options.check(type); !fits) return fits.error();
        return detail::explain(detail::make<Plan>(kvjit_plan_create, get(), &batch, &options), &batch);
    }

    detail::Handle<kvjit_kernel, kvjit_kernel_release> handle_;
    std::int32_t starts_type_;
};

}  // namespace kvjit
