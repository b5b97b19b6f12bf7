#include "support/policy.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <vector>

namespace kvjit::test {
namespace {

// linux/prctl.h has them since Linux 6.3.
constexpr int kSetMdwe = 65, kGetMdwe = 66;
constexpr unsigned long kRefuseExecGain = 1;
constexpr __u32 kAskForPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h, since Linux 5.16

constexpr auto kCall = static_cast<__u32>(offsetof(seccomp_data, nr));
constexpr auto kFirstArgument = static_cast<__u32>(offsetof(seccomp_data, args));
constexpr auto kThirdArgument = static_cast<__u32>(kFirstArgument + 2 * sizeof(__u64));

constexpr sock_filter load(__u32 offset) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
}
constexpr sock_filter skip_unless(__u16 test, __u32 operand, __u8 instructions) {
    return BPF_JUMP(static_cast<__u16>(BPF_JMP | BPF_K | test), operand, 0, instructions);
}
constexpr sock_filter answer(__u32 action) {
    return BPF_STMT(BPF_RET | BPF_K, action);
}

constexpr sock_filter kRefuse = answer(SECCOMP_RET_ERRNO | EPERM);

/// What answers the forbidden calls.
std::vector<sock_filter> code_of(Forbidden forbidden) {
    if (forbidden == Forbidden::kAskForAmx || forbidden == Forbidden::kAskForAmxFatally) {
        const bool ends = forbidden == Forbidden::kAskForAmxFatally;
        return {load(kCall), skip_unless(BPF_JEQ, __NR_arch_prctl, 3), load(kFirstArgument),
                skip_unless(BPF_JEQ, kAskForPermission, 1), ends ? answer(SECCOMP_RET_KILL_PROCESS) : kRefuse};
    }
    std::vector<sock_filter> code = {load(kCall), skip_unless(BPF_JEQ, __NR_mprotect, 3), load(kThirdArgument),
                                     skip_unless(BPF_JSET, PROT_EXEC, 1), kRefuse};
    if (forbidden == Forbidden::kProtectAndFiles) {
        const sock_filter files[] = {load(kCall), skip_unless(BPF_JEQ, __NR_memfd_create, 1), kRefuse};
        code.insert(code.end(), std::begin(files), std::end(files));
    }
    return code;
}

}  // namespace

bool has_mdwe() {
    return prctl(kGetMdwe, 0, 0, 0, 0) >= 0;
}

bool set_mdwe() {
    return prctl(kSetMdwe, kRefuseExecGain, 0, 0, 0) == 0;
}

bool set_filter(Forbidden forbidden) {
    std::vector<sock_filter> code = code_of(forbidden);
    code.push_back(answer(SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace kvjit::test
