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

constexpr auto kCall = static_cast<__u32>(offsetof(seccomp_data, nr));
constexpr auto kThirdArgument = static_cast<__u32>(offsetof(seccomp_data, args) + 2 * sizeof(__u64));

constexpr sock_filter load(__u32 offset) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
}
constexpr sock_filter skip_unless(__u16 test, __u32 operand, __u8 instructions) {
    return BPF_JUMP(static_cast<__u16>(BPF_JMP | BPF_K | test), operand, 0, instructions);
}
constexpr sock_filter answer(__u32 action) {
    return BPF_STMT(BPF_RET | BPF_K, action);
}

}  // namespace

bool has_mdwe() {
    return prctl(kGetMdwe, 0, 0, 0, 0) >= 0;
}

bool set_mdwe() {
    return prctl(kSetMdwe, kRefuseExecGain, 0, 0, 0) == 0;
}

bool set_filter(Forbidden forbidden) {
    const sock_filter refuse = answer(SECCOMP_RET_ERRNO | EPERM);
    std::vector<sock_filter> code = {load(kCall), skip_unless(BPF_JEQ, __NR_mprotect, 3), load(kThirdArgument),
                                     skip_unless(BPF_JSET, PROT_EXEC, 1), refuse};
    if (forbidden == Forbidden::kProtectAndFiles) {
        const sock_filter files[] = {load(kCall), skip_unless(BPF_JEQ, __NR_memfd_create, 1), refuse};
        code.insert(code.end(), std::begin(files), std::end(files));
    }
    code.push_back(answer(SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace kvjit::test
