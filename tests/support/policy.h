// Policies over this process, most of them W^X. None can be taken back: set them in a child.
#pragma once

namespace kvjit::test {

/// Whether the kernel knows PR_SET_MDWE (Linux 6.3).
bool has_mdwe();

/// PR_SET_MDWE: no mapping becomes executable, nor is writable and executable. False if that failed.
bool set_mdwe();

enum class Forbidden { kProtect, kProtectAndFiles, kAskForAmx, kAskForAmxFatally };

/// A seccomp filter that refuses mprotect with PROT_EXEC, as systemd's MemoryDenyWriteExecute does; with
/// kProtectAndFiles memfd_create too. With kAskForAmx one that refuses the permission to use AMX, or ends the process
/// that asks for it. False if it failed.
bool set_filter(Forbidden forbidden);

}  // namespace kvjit::test
