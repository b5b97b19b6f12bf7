#!/usr/bin/env bash
# kit_test.sh BUILD: what run_all.sh says for help, for bad arguments, and where there is no GPU; what kvjit replay says
# of targets there; and which folders ./dev gpu-kit refuses to replace. The machine's own GPU, if it has one, is hidden.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUDA_VISIBLE_DEVICES=

# expect STATUS TEXT ARGUMENT...: run_all.sh exits so and says so.
expect() {
    local status=0 wanted=$1 text=$2
    shift 2
    "$here/run_all.sh" "$@" >"$work/said" 2>&1 || status=$?
    if ((status == wanted)) && grep -qF -- "$text" "$work/said"; then return 0; fi
    printf 'run_all.sh %s: exit status %d instead of %d, or it does not say "%s":\n' "$*" "$status" "$wanted" "$text"
    cat "$work/said"
    exit 1
}

expect 0 'Exit status:' --help
expect 2 "no option '--frobnicate'" --frobnicate
expect 2 "no step 'everything'" --steps replay,everything
expect 2 '--device takes a number' --device first
expect 2 '--out needs a value' --out
expect 77 'SKIP: no GPU' --build "$build" --out "$work/out" --quick

grep -q '^machine  *SKIP .* no GPU' "$work/out/results.txt"
grep -q '"step": "machine", "result": "SKIP"' "$work/out/results.json"
if command -v python3 >/dev/null; then python3 -m json.tool "$work/out/results.json" >/dev/null; fi
echo "run_all.sh is as it says"

# ---- The conformance tests take the options that run_all.sh gives them, and list what they would run -------------

# stand_in PROGRAM COMMAND: a program of a build folder where there is a GPU.
stand_in() {
    mkdir -p "$(dirname -- "$work/gpu/$1")"
    printf '#!/bin/sh\n%s\n' "$2" >"$work/gpu/$1"
    chmod +x "$work/gpu/$1"
}
stand_in kvjit 'exit 0'
stand_in tests/gpu/kvjit_gpu_test 'echo "cuda:0: a stand-in"'
stand_in tests/gpu/kvjit_gpu_bench 'exit 1'
stand_in tests/conformance/kvjit_conformance "exec '$build/tests/conformance/kvjit_conformance' \"\$@\" --target host --list-test-cases"
expect 0 'conformance   pass' --build "$work/gpu" --out "$work/out" --steps machine,conformance
grep -q '^random calls' "$work/out/log.txt"
echo "the conformance tests take run_all.sh's options"

# ---- kvjit replay: a bad target is called bad; a GPU that is missing, once for all calls ------------------------

calls=("$here"/../golden/pmx/00*.safetensors)

# replays TARGET LINE: `kvjit replay` ends with status 2 after one line that begins so.
replays() {
    local status=0
    "$build/kvjit" replay --quiet --target "$1" "${calls[@]}" >"$work/said" 2>&1 || status=$?
    if ((status == 2)) && [[ $(wc -l <"$work/said") == 1 && $(cat "$work/said") == "$2"* ]]; then return 0; fi
    printf 'kvjit replay --target "%s": exit status %d instead of 2, or not the one line "%s...":\n' "$1" "$status" "$2"
    cat "$work/said"
    exit 1
}

for target in cuda cuda:3 sm_80 sm_90a; do replays "$target" 'kvjit: no GPU: '; done
for target in cuda:x 'cuda: 0' cuda:-1 sm_80a sm_75; do
    replays "$target" "kvjit: KVJIT_BAD_TARGET: target is \"$target\"; "
done
if grep -q '^KVJIT_CPU_JIT:[A-Z]*=OFF' "$build/CMakeCache.txt"; then
    replays cuda-emulated 'kvjit: KVJIT_BAD_TARGET: target is "cuda-emulated"; the emulation needs the CPU compiler'
fi
echo "kvjit replay is clear about targets"

# ---- ./dev gpu-kit: in a copy of the tree, so that a mistake costs nothing ------------------------------------

# refuses FOLDER TEXT: ./dev gpu-kit says so, and the folder keeps its files.
refuses() {
    local status=0 before
    before=$(find "$1" -type f | sort)
    "$work/tree/dev" gpu-kit "$1" >"$work/said" 2>&1 || status=$?
    if ((status == 1)) && grep -qF -- "$2" "$work/said" && [[ $(find "$1" -type f | sort) == "$before" ]]; then
        return 0
    fi
    printf './dev gpu-kit %s: exit status %d, not 1, or it does not say "%s", or files are gone:\n' "$1" "$status" "$2"
    cat "$work/said"
    exit 1
}

if [[ -e $here/../../dev ]]; then
    mkdir -p "$work/tree/tests" "$work/tree/empty"
    cp "$here/../../dev" "$work/tree/"
    cp -r "$here" "$work/tree/tests/gpu"
    refuses "$work/tree/tests/gpu" 'is no kit'
    refuses "$work/tree/empty" 'is no kit'
    if command -v git >/dev/null; then
        git -C "$work/tree" init -q
        touch "$work/tree/tests/gpu/.kvjit-gpu-kit"
        git -C "$work/tree" add tests
        refuses "$work/tree/tests/gpu" 'git tracks'
    fi
    echo "./dev gpu-kit replaces kits alone"
fi
