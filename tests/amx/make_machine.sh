#!/usr/bin/env bash
# Makes the machine that on_amx.sh starts: make_machine.sh [FOLDER] (default: build/amx-machine).
#
# FOLDER becomes a Debian 13 with the emulator Bochs and a Linux kernel, 1.2 GB in 5 to 10 minutes. mend_bochs.py says
# what Bochs 3.0 lacks for kernels with AMX.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
machine=${1:-$here/../../build/amx-machine}

if ((EUID != 0)) || ! command -v debootstrap > /dev/null; then
    echo "make_machine.sh: takes root and debootstrap (Debian: apt install debootstrap)" >&2
    exit 2
fi
if [[ -e $machine ]]; then
    echo "make_machine.sh: $machine is there already" >&2
    exit 2
fi

rm -rf "$machine.new"
debootstrap --variant=minbase trixie "$machine.new"
cp /etc/resolv.conf "$machine.new/etc/"
mkdir "$machine.new/amx"
cp "$here/mend_bochs.py" "$machine.new/amx/"
cat > "$machine.new/amx/make.sh" <<'TEXT'
cd /amx
# The archive's sources, too.
find /etc/apt -name '*.list' -exec sed -i 'p; s/^deb /deb-src /' {} +
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends bochsbios busybox-static cpio g++ isolinux make python3 syslinux-common \
    vgabios xorriso xz-utils

# Bochs alone boots this kernel: it is unpacked, not installed.
apt-get download -q "$(apt-cache depends linux-image-cloud-amd64 | grep -o 'linux-image-[0-9][^ ]*')"
dpkg-deb -x linux-image-*.deb linux
mv linux/boot/vmlinuz-* vmlinuz

# apt holds each file of a source package to the archive's checksums. Only what the makers of Bochs published is taken:
# the package's other files may fail to arrive.
apt-get source -q --download-only bochs/trixie || ls bochs_*.orig.tar.xz
mkdir bochs
tar -xf bochs_*.orig.tar.xz -C bochs --strip-components=1
python3 mend_bochs.py bochs
cd bochs
CXXFLAGS=-O2 CFLAGS=-O2 ./configure --with-nogui --enable-cpu-level=6 --enable-x86-64 --enable-all-optimizations \
    --enable-avx --enable-evex --enable-amx --enable-cet --enable-vmx=2 --enable-memtype --enable-protection-keys \
    --enable-pci --enable-cdrom --enable-a20-pin --disable-docbook
make -j"$(nproc)"
TEXT
chroot "$machine.new" bash -euo pipefail /amx/make.sh
mv "$machine.new" "$machine"
echo "made $machine"
