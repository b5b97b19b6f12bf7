#!/usr/bin/env bash
# What ./dev install builds, the target kvjit_installable, has every file that the build makes and the installation
# takes. Takes a build by ninja. ./dev install refuses what is no folder before it builds anything.
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname -- "$0")/common.sh"

# refuses TEXT ARGUMENT...: ./dev install exits with 1 and says so.
refuses() {
    local said status=0
    said=$("$KVJIT_TEST_SOURCES/dev" install "${@:2}" 2>&1) || status=$?
    [[ $status == 1 && $said == *"$1"* ]] || fail "./dev install ${*:2} ends with $status, not 1, or doesn't say \"$1\": $said"
}
refuses 'install takes one folder'
refuses 'install takes one folder' --prefix
refuses 'install takes one folder' one two
refuses 'cannot install into' "$KVJIT_TEST_SOURCES/dev/kvjit"

if [[ ! -f $KVJIT_BUILD/build.ninja ]] || ! command -v ninja >/dev/null; then
    echo "SKIP: no build by ninja"
    exit 77
fi
installed=$(find "$KVJIT_BUILD" -name cmake_install.cmake -exec grep -hoE '"/[^"]+"' {} + | tr -d '"' |
    sed -n "s|^$KVJIT_BUILD/||p" | sort -u)
made=$(comm -12 <(grep -v 'cmake_install\.cmake$' <<<"$installed") <(ninja -C "$KVJIT_BUILD" -t targets all | sed -n 's/: .*//p' | sort -u))
for file in lib/libkvjit.so runtime/tools/texts/kvjit.1; do
    if [[ $file == lib/* || -x $KVJIT_BUILD/kvjit ]]; then
        grep -qxF "$file" <<<"$made" || fail "the installation doesn't take $file; it takes $made"
    fi
done
# commands TARGET...: what ninja runs for them from nothing.
commands() { ninja -C "$KVJIT_BUILD" -t commands "$@" | sort -u; }
mapfile -t made <<<"$made"
further=$(comm -13 <(commands kvjit_installable) <(commands "${made[@]}"))
[[ -z $further ]] || fail "kvjit_installable lacks what these commands make: $further"
