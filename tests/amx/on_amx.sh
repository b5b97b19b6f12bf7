#!/usr/bin/env bash
# Runs a command on an emulated processor with AMX: on_amx.sh [OPTION...] COMMAND [ARGUMENT...]
#
#   --machine FOLDER  what make_machine.sh made (default: build/amx-machine)
#   --with PATH       a file or folder that the command reads; may be repeated
#   --compile-here    the command, kvjit replay or kvjit_conformance, runs here first, which tells the specs that it
#                     uses; build/kvjit bundles their kernels, and the processor with AMX gets the bundle. It would take
#                     minutes to compile what takes this one seconds.
#
# Bochs executes some 100 million instructions a second of one Sapphire Rapids core. Linux starts there with the
# command, the libraries that it needs, build/lib and each PATH, all at their own paths; the command runs in this
# folder. What it prints appears here, and its exit status is the script's. Environment variables whose names begin with
# KVJIT_ are the command's, too. docs/compiling.md, "AMX".
set -euo pipefail

build=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)/build
machine=$build/amx-machine
taken=("$build/lib")
compiles_here=false
while [[ ${1:-} == --* ]]; do
    case $1 in
        --machine) machine=$(realpath -m -- "$2") && shift ;;
        --with) taken+=("$(realpath -- "$2")") && shift ;;
        --compile-here) compiles_here=true ;;
        *) break ;;
    esac
    shift
done
if (($# == 0)) || [[ $1 == --* ]]; then
    echo "usage: on_amx.sh [--machine FOLDER] [--with PATH]... [--compile-here] COMMAND [ARGUMENT...]" >&2
    exit 2
fi
if [[ ! -x $machine/amx/bochs/bochs ]]; then
    echo "SKIP: the emulated machine is not in $machine: tests/amx/make_machine.sh"
    exit 77
fi

command=$(realpath -- "$(command -v -- "$1")")
shift
work=$(mktemp -d "$machine/run.XXXXXX")
trap 'rm -rf "$work"' EXIT
files=$work/files
mkdir -p "$files"/{bin,proc,sys,dev,tmp} "$work/cd"

if $compiles_here; then
    KVJIT_TRACE_SPECS=$work/specs.txt "$command" "$@"
    "$build/kvjit" bundle create "$work/kernels.kvjb" --specs "$work/specs.txt" --targets x86-64-v4-amx
    taken+=("$work/kernels.kvjb")
    set -- "$@" --target x86-64-v4-amx --bundle "$work/kernels.kvjb"
    export KVJIT_CACHE_DIR=
fi

# ---- What the machine starts with ----------------------------------------------------------------------------------

mapfile -t libraries < <(ldd "$command" | grep -o '/[^ ]*')
tar -ch -C / "${libraries[@]#/}" | tar -x -C "$files"
tar -c -C / "${command#/}" "${taken[@]#/}" | tar -x -C "$files"
cp "$machine/bin/busybox" "$files/bin/"
{
    echo '#!/bin/busybox sh'
    echo '/bin/busybox --install -s /bin'
    echo 'mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev'
    echo 'export PATH=/bin HOME=/tmp; set -o pipefail'
    while IFS='=' read -r name _; do printf 'export %s=%q\n' "$name" "${!name}"; done < <(env | grep '^KVJIT_' || true)
    printf 'cd %q\n' "$PWD"
    printf '%q ' "$command" "$@"
    echo '2>&1 | cat'
    # A second is what the console takes for its last lines.
    # shellcheck disable=SC2016 # the machine's own $?
    echo 'echo "on_amx.sh: status $?"; sleep 1; poweroff -f'
} > "$files/init"
mkdir -p "$files$PWD"
chmod +x "$files/init"

inside() { chroot "$machine" bash -euo pipefail -c "cd /${work##*/} && $1"; }

cp "$machine"/usr/lib/ISOLINUX/isolinux.bin "$machine"/usr/lib/syslinux/modules/bios/ldlinux.c32 \
    "$machine/amx/vmlinuz" "$work/cd/"
# no5lvl: Bochs 3.0 does not return from system management mode under paging of five levels.
cat > "$work/cd/isolinux.cfg" <<'TEXT'
DEFAULT linux
LABEL linux
  KERNEL vmlinuz
  APPEND initrd=initrd rdinit=/init console=ttyS0 loglevel=1 no5lvl nokaslr mitigations=off tsc=reliable
TEXT
inside '(cd files && find . | cpio --quiet -o -H newc | gzip -1) > cd/initrd'
inside 'xorriso -as mkisofs -quiet -o disk -b isolinux.bin -c boot.cat \
                -no-emul-boot -boot-load-size 4 -boot-info-table cd 2> errors || { cat errors >&2; exit 1; }'
cat > "$work/bochsrc" <<TEXT
display_library: nogui
config_interface: textconfig
cpu: model=sapphire_rapids, count=1, ips=100000000
clock: sync=none
panic: action=fatal
error: action=ignore
info: action=ignore
memory: guest=2048, host=2048
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
ata0-master: type=cdrom, path=/${work##*/}/disk, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=/${work##*/}/console
log: /${work##*/}/log
TEXT

# ---- The run -------------------------------------------------------------------------------------------------------

touch "$work/console"
chroot "$machine" /amx/bochs/bochs -q -f "/${work##*/}/bochsrc" > "$work/out" 2>&1 < /dev/null &
bochs=$!
trap 'kill "$bochs" 2> /dev/null || true; rm -rf "$work"' EXIT
tail -n +1 -f --pid="$bochs" "$work/console" | tr -d '\r' |
    grep --line-buffered -v -e '^on_amx.sh: status' -e 'reboot: Power down$' || true
status=$(tr -d '\r' < "$work/console" | sed -n 's/^on_amx.sh: status //p')
if [[ -z $status ]]; then
    echo "on_amx.sh: the machine stopped before the command ended: $(grep PANIC "$work/log" | tail -n 1)" >&2
    exit 1
fi
exit "$status"
