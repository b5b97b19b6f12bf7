// NVIDIA's driver, its GPUs, and NVRTC.
#include <filesystem>

#include "cuda/driver.h"
#include "cuda/gpu_info.h"
#include "cuda/nvrtc_library.h"
#include "cuda/nvrtc_search.h"
#include "doctor/finding.h"
#include "environment.h"

namespace kvjit::tool {
namespace {

/// Whether the machine has a GPU, as its system shows it.
bool has_device() {
    std::error_code error;
    return std::filesystem::exists("/dev/nvidiactl", error) || std::filesystem::exists("/dev/nvgpu", error);
}

Health absent() {
    return has_device() ? Health::kProblem : Health::kNote;
}

Findings examine_gpus(const rt::Driver& driver) {
    Findings findings;
    for (int ordinal = 0;; ++ordinal) {
        const auto gpu = rt::find_gpu(driver, ordinal);
        if (gpu) {
            findings.push_back({Health::kGood, "GPU",
                                std::to_string(ordinal) + ": " + gpu->name + ", " + rt::device_target_name(*gpu) +
                                    ", " + std::to_string(gpu->multiprocessors) + " multiprocessors"});
            continue;
        }
        if (ordinal == 0)
            findings.push_back({absent(), "GPU", gpu.error().message, "look at nvidia-smi and CUDA_VISIBLE_DEVICES"});
        return findings;
    }
}

Finding examine_nvrtc(int driver_major, Health otherwise) {
    const bool is_chosen = !rt::environment_text(rt::Variable::kNvrtc).value_or("").empty();
    const char* fix =
        is_chosen
            ? "unset KVJIT_NVRTC, or set it to the path of libnvrtc.so.13 or libnvrtc.so.12"
            : "apt install cuda-nvrtc-13-0 (NVIDIA's repository), or pip install nvidia-cuda-nvrtc, or set KVJIT_NVRTC";
    if (is_chosen) otherwise = Health::kProblem;
    const auto path = rt::find_nvrtc("", driver_major);
    if (!path) return {otherwise, "NVRTC", path.error().message, fix};
    const auto library = rt::open_nvrtc(*path);
    if (!library) return {Health::kProblem, "NVRTC", library.error().message, fix};
    std::string known;
    for (const int number : library->architectures) known += " sm_" + std::to_string(number);
    return {Health::kGood, "NVRTC", rt::cuda_version_text(library->version) + ", " + *path + ", for" + known};
}

}  // namespace

Findings examine_cuda() {
    const auto& driver = rt::shared_driver();
    Findings findings;
    if (driver) {
        findings.push_back({Health::kGood, "driver", "for CUDA " + rt::cuda_version_text(driver->version())});
        for (Finding& gpu : examine_gpus(*driver)) findings.push_back(std::move(gpu));
    } else {
        findings.push_back({absent(), "driver", driver.error().message,
                            has_device() ? "install or update NVIDIA's driver" : "none is needed without a GPU"});
    }
    const bool has_gpu = findings.back().what == "GPU" && findings.back().health == Health::kGood;
    findings.push_back(
        examine_nvrtc(driver ? driver->version() / 1000 : 0, has_gpu ? Health::kProblem : Health::kNote));
    return findings;
}

}  // namespace kvjit::tool
