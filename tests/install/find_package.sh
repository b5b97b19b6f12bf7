#!/usr/bin/env bash
# find_package takes what 0.x promises, the same minor version, and nothing else; a program builds with it, and runs.
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname -- "$0")/common.sh"

program=$KVJIT_TEST_WORK/program build=$KVJIT_TEST_WORK/find_package
rm -rf "$program" "$build"
mkdir "$program"
cp "$KVJIT_TEST_SOURCES/tests/install/version.c" "$KVJIT_TEST_SOURCES/examples/quickstart.cc" "$program"
cp "$KVJIT_TEST_SOURCES/tests/install/program.cmake" "$program/CMakeLists.txt" # it is no part of this tree's build

configure() {
    "$CMAKE" -S "$program" -B "$build" "-DCMAKE_PREFIX_PATH=$KVJIT_TEST_TREE" "-DWANTED=$1" 2>&1
}

for wanted in "${serves_not[@]}"; do
    if said=$(configure "$wanted"); then fail "$wanted is found where $version is installed"; fi
    [[ $said == *"version: $version"* ]] || fail "$wanted is refused for another reason: $said"
done
for wanted in "${serves[@]}" ''; do
    said=$(configure "$wanted") || fail "'$wanted' is not found where $version is installed: $said"
    [[ $said == *"kvjit_VERSION $version"* ]] || fail "the package's version is another: $said"
done
"$CMAKE" --build "$build" >/dev/null
check_programs "$build"
