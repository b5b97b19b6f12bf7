#!/usr/bin/env bash
# needed.sh DOCUMENT LIBRARY: the table of docs/bundles.md has what libkvjit really needs, and the packages where that lies.
set -euo pipefail

document=$1 library=$2

fail() {
    printf 'needed.sh: %s\n' "$*" >&2
    exit 1
}

if ! grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
    echo "SKIP: the table is Debian 12's"
    exit 77
fi

# rows PATTERN: "library package" of the table's rows that match it.
rows() { sed -nE "s/^\| \`([^\`]+\.so[^\`]*)\` \| (\S+) \| $1 \|$/\1 \2/p" "$document" | sort; }

diff <(rows libkvjit | cut -d ' ' -f 1) <(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort) ||
    fail "the table's libraries (<) are not those that libkvjit needs (>)"
# Without what the kernel brings; the dynamic linker stands there with its path.
diff <(rows '\S+' | cut -d ' ' -f 1) <(ldd "$library" | awk '{ print $1 }' | grep -v vdso | sed 's|.*/||' | sort) ||
    fail "the table's libraries (<) are not those that ldd shows (>)"
while read -r name package; do
    [[ $(dpkg-query -S "*/x86_64-linux-gnu/$name" | sed -n 's/^\([^: ]*\):[^ ]* .*/\1/p' | sort -u) == "$package" ]] ||
        fail "$name is not in $package, but: $(dpkg-query -S "*/$name")"
done < <(rows '\S+')
