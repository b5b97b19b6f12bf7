#!/usr/bin/env bash
# kit_test.sh BUILD: what run_all.sh says for help, for bad arguments, and where there is no GPU. The machine's own, if
# it has one, is hidden.
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
