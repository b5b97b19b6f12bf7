#!/usr/bin/env bash
# chroot.sh TOOL CHILD WORK: what a program ships is enough. A folder holds process_child, what ldd lists for it, and a
# bundle; in a root of that folder alone it runs a step. Nothing of LLVM, Clang or CUDA is there.
set -euo pipefail

tool=$1 child=$2 work=$3

fail() {
    printf 'chroot.sh: %s\n' "$*" >&2
    exit 1
}

if ((EUID != 0)) || ! chroot / true 2>/dev/null; then
    echo "SKIP: only root may chroot"
    exit 77
fi

unset "${!KVJIT_@}"
root=$work/root
rm -rf "$work"
mkdir -p "$root/lib" "$root/lib64"
cp "$child" "$root/child"
ldd "$child" | grep -oE '/[^ ]+' >"$work/libraries"
grep -q libkvjit.so "$work/libraries" || fail "process_child has no libkvjit.so"
while read -r library; do
    cp -L "$library" "$root/lib/"
done <"$work/libraries"
mv "$root"/lib/ld-linux-x86-64.so.2 "$root/lib64/"

compiled=$(KVJIT_TRACE_SPECS=$work/specs.txt "$child" "$work/cache")
"$tool" bundle create "$root/kernels.kvjb" -q --specs "$work/specs.txt" --targets host --cache-dir ''
"$tool" bundle create "$root/others.kvjb" -q op=Merge,head_dim=24 --targets x86-64-v2 --cache-dir ''
if find "$root" -printf '%P\n' | grep -iE 'llvm|clang|compiler|cuda|nvrtc|^proc'; then fail "these are in the folder"; fi

# shipped VARIABLE...: process_child there. The machine's /proc is only its descriptor 9.
shipped() { env -i KVJIT_TEST_PROC=9 "$@" "$(command -v chroot)" "$root" /child /cache 9</proc; }
# value NAME TEXT: of the line "NAME value" in it.
value() { sed -n "s/^$1 //p" <<<"$2"; }

served=$(shipped KVJIT_TEST_BUNDLE=/kernels.kvjb)
[[ $(value status "$served") == KVJIT_OK ]] || fail "with the bundle: $served"
[[ $(value compiles "$served") == 0 && $(value bundle_hits "$served") == "$(value compiles "$compiled")" ]] ||
    fail "with the bundle: $served; where it is compiled: $compiled"
[[ $(value output "$served") == "$(value output "$compiled")" ]] || fail "the bundle's kernel gives another output"
(($(value libkvjit.so "$served") > 0)) || fail "it doesn't see what is mapped: $served"
for library in libkvjit_compiler libnvrtc; do
    [[ $(value $library "$served") == 0 ]] || fail "$library is mapped: $served"
done

# A bundle that lacks the spec: the error has the line that it lacks, and with that line it serves.
for jit in on off; do
    missed=$(shipped KVJIT_TEST_BUNDLE=/others.kvjb KVJIT_JIT=$jit)
    status=KVJIT_COMPILER_MISSING
    if [[ $jit == off ]]; then status=KVJIT_NOT_FOUND; fi
    [[ $(value status "$missed") == "$status" ]] || fail "with KVJIT_JIT=$jit: $missed"
    value message "$missed" | sed -n 's/.*add this line to the bundle.s specs\.txt: //p' >"$work/line.txt"
    [[ -s $work/line.txt ]] || fail "no line for specs.txt in: $missed"
    "$tool" bundle create "$root/mended.kvjb" -q --specs "$work/line.txt" --targets host --cache-dir "$work/cache"
    mended=$(shipped KVJIT_TEST_BUNDLE=/mended.kvjb KVJIT_JIT=$jit)
    [[ $(value status "$mended") == KVJIT_OK ]] || fail "with the line $(cat "$work/line.txt"): $mended"
done
rm -rf "$work"
