#include "cuda/nvrtc_program.h"

#include "cuda/compile_report.h"
#include "cuda/nvrtc_search.h"

namespace kvjit::rt {
namespace {

class Program {
public:
    Program(const nvrtc::Api& api, const NvrtcRequest& request)
        : api_(api),
          code_(api.create_program(&handle_, request.source.c_str(), request.name.c_str(), 0, nullptr, nullptr)) {}
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() {
        if (handle_ != nullptr) api_.destroy_program(&handle_);
    }

    void compile(const std::vector<const char*>& flags) {
        if (code_ == nvrtc::kSuccess)
            code_ = api_.compile_program(handle_, static_cast<int>(flags.size()), flags.data());
    }
    /// The log of NVRTC and ptxas, also after a failure.
    std::string log() const {
        std::string text;
        if (handle_ != nullptr) (void)read(text, api_.get_program_log_size, api_.get_program_log);
        while (text.ends_with('\0')) text.pop_back();  // NVRTC 13 counts two
        return text;
    }
    std::string product(bool ptx) {
        std::string bytes;
        if (code_ != nvrtc::kSuccess) return bytes;
        code_ = ptx ? read(bytes, api_.get_ptx_size, api_.get_ptx) : read(bytes, api_.get_cubin_size, api_.get_cubin);
        if (ptx && bytes.ends_with('\0')) bytes.pop_back();
        return bytes;
    }
    nvrtc::Code code() const { return code_; }

private:
    using Size = nvrtc::Code (*)(nvrtc::Program, std::size_t*);
    using Read = nvrtc::Code (*)(nvrtc::Program, char*);

    nvrtc::Code read(std::string& bytes, Size size, Read get) const {
        std::size_t count = 0;
        if (const nvrtc::Code code = size(handle_, &count); code != nvrtc::kSuccess) return code;
        bytes.resize(count);
        return get(handle_, bytes.data());
    }

    const nvrtc::Api& api_;
    nvrtc::Program handle_ = nullptr;
    nvrtc::Code code_;
};

/// Every accepted NVRTC knows the other flags.
std::unexpected<gen::Error> refused_target(const std::string& log) {
    return gen::fail(KVJIT_BAD_TARGET, "target", "NVRTC refuses the target: " + log);
}

std::unexpected<gen::Error> failure(const nvrtc::Api& api, nvrtc::Code code, const std::string& name,
                                    const std::string& log) {
    switch (code) {
        case nvrtc::kCompilation:
            if (log.starts_with("Command-line error")) return refused_target(log);  // sm_89a, say
            return gen::fail(KVJIT_COMPILE_FAILED, "source", name + " doesn't compile:\n" + log);
        case nvrtc::kInvalidOption:
            return refused_target(log);
        case nvrtc::kBuiltinOperationFailure:
            return missing_library(kNvrtcText, "its libnvrtc-builtins isn't beside it: " + log);
        case nvrtc::kOutOfMemory:
            return gen::fail(KVJIT_OUT_OF_MEMORY, "source", "NVRTC has not enough memory to compile " + name);
        default:
            return gen::fail(KVJIT_COMPILE_FAILED, "source",
                             "NVRTC failed at " + name + ": " + api.get_error_string(code) + "\n" + log);
    }
}

}  // namespace

gen::Result<CompileOutput> run_nvrtc(const nvrtc::Api& api, const NvrtcRequest& request) {
    Program program(api, request);
    program.compile(request.flags);
    CompileOutput output;
    output.log = without_times(program.log());
    output.object = program.product(request.ptx);
    if (program.code() == nvrtc::kSuccess) return output;
    return failure(api, program.code(), request.name, output.log);
}

}  // namespace kvjit::rt
