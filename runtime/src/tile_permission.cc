#include "tile_permission.h"

#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace kvjit::rt {
namespace {

// Linux's asm/prctl.h and asm/fpu/types.h; the kernel's documentation, arch/x86/xstate.rst.
constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
constexpr long kTileData = 18;              // XFEATURE_XTILEDATA

int request_of_system() {
#ifdef SYS_arch_prctl
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 0 : errno;
#else
    return ENOSYS;
#endif
}

std::string reason(int error) {
    if (error != ENOSPC) return "the system refuses AMX (arch_prctl: " + std::generic_category().message(error) + ")";
    return "the system refuses AMX while a thread has a signal stack (sigaltstack) of less than " +
           std::to_string(getauxval(AT_MINSIGSTKSZ)) + " bytes: it needs a larger one before kernels first use AMX";
}

}  // namespace

TilePermission& TilePermission::of_process() {
    static auto& permission = *new TilePermission(request_of_system);  // kernels may ask at the process's end
    return permission;
}

std::expected<void, std::string> TilePermission::ask() {
    std::call_once(asked_, [this] {
        error_ = request_();
        state_ = error_ == 0 ? State::kGranted : State::kRefused;
    });
    if (error_ == 0) return {};
    return std::unexpected(reason(error_));
}

}  // namespace kvjit::rt
