#!/usr/bin/env bash
# Installs into one folder and moves that to another: nothing may know where it was put first.
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname -- "$0")/common.sh"

rm -rf "$KVJIT_TEST_TREE" "$KVJIT_TEST_TREE.first"
"$CMAKE" --install "$KVJIT_BUILD" --prefix "$KVJIT_TEST_TREE.first" >/dev/null
mv "$KVJIT_TEST_TREE.first" "$KVJIT_TEST_TREE"
for header in kvjit.h kvjit.hpp cpp/engine.hpp blocks.h blocks.hpp dlpack.hpp version.h interop/ksana.h; do
    [[ -f $KVJIT_TEST_TREE/include/kvjit/$header ]] || fail "kvjit/$header is not installed"
done
if grep -rIl "$KVJIT_TEST_TREE.first" "$KVJIT_TEST_TREE"; then fail "these files name the folder that the tree was in first"; fi
if [[ -x $KVJIT_TEST_TREE/bin/kvjit ]]; then
    [[ $("$KVJIT_TEST_TREE/bin/kvjit" --version) == "kvjit $version" ]] || fail "bin/kvjit has another version"
    if [[ $KVJIT_TEST_RUNS_STEP == 0 ]]; then exit 0; fi
    "$KVJIT_TEST_TREE/bin/kvjit" replay --quiet --target cuda-emulated "$KVJIT_TEST_SOURCES"/tests/golden/pmx/000_*.safetensors ||
        fail "the tree's libkvjit_compiler and libkvjit_emulation don't run a recorded call"
fi
