#!/usr/bin/env bash
# specs_test.sh BUILD LIBRARIES: run_all.sh's step `specs` on the PTX interpreter, in a kit with few specs whose kvjit
# replaces the batches by tiny ones. Times mean nothing; which lines there are, and what a refused spec does to the
# others, is tested.
set -euo pipefail

build=$1 libraries=$2
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kit=$work/kit

die() {
    echo "specs_test.sh: $*" >&2
    cat "$work/said" "$kit/out/log.txt" "$kit/out/measured.txt" >&2 || true
    exit 1
}

make_kit() {
    mkdir -p "$kit/bin" "$kit/calls"
    cp "$here/../gpu/run_all.sh" "$kit/"
    ln -s "$build/tests/conformance/kvjit_conformance" "$build/tests/gpu/kvjit_gpu_test" "$build/tests/gpu/kvjit_gpu_bench" \
        "$kit/bin/"
    touch "$kit/calls/none.safetensors"
    cat >"$kit/bin/kvjit" <<SCRIPT
#!/usr/bin/env bash
arguments=("\${@/#64x1:8192/2x1:70}")
exec "$build/kvjit" "\${arguments[@]/#4x4096:4096/2x20:20}"
SCRIPT
    chmod +x "$kit/bin/kvjit"
}

# runs STATUS RESULT SPECS OPTION...: the step ends so.
runs() {
    local status=0 wanted=$1 result=$2
    printf '%s\n' "$3" >"$kit/specs.txt"
    shift 3
    "$here/on_ptx.sh" --libraries "$libraries" "$kit/run_all.sh" --quick --steps specs --out "$kit/out" "$@" >"$work/said" 2>&1 ||
        status=$?
    [[ $status == "$wanted" ]] || die "exit status $status, not $wanted"
    grep -qE "^specs +$result" "$kit/out/results.txt" || die "results.txt does not say '$result'"
}

# measured TEXT: the lines without times.
measured() {
    local lines
    lines=$(awk '!/^#/ && $3 > 0 { print $1, $2, $4, $5 }' "$kit/out/measured.txt")
    [[ $lines == "$1" ]] || die "measured.txt has, without times: $lines"
}

# NVRTC may be missing: then this says so, which the test's driver takes for "skipped".
"$here/on_ptx.sh" --libraries "$libraries" "$build/kvjit" inspect head_dim=64 --target cuda --program decode >"$work/said" 2>&1 ||
    { cat "$work/said" && exit 1; }

make_kit
runs 0 'pass .* 2 of 2 programs' '# a comment
small   *  head_dim=64,group=16,quant_bit=8,cache_mode=page_table
cache      op=KeyValueCache,head_dim=64'
measured 'small decode 62848 1146880
small prefill 373760 3440640'
grep -q '^# cuda:0: PTX interpreter' "$kit/out/measured.txt" || die "the GPU has no name"

runs 1 'fail .* 2 of 4 programs .* not refused.decode refused.prefill' 'refused  head_dim=7
other    op=MultiHeadAttention,head_dim=64,group=32,is_causal=1'
measured 'other decode 52224 1146880
other prefill 337920 3440640'
echo "run_all.sh measures the specs that it can: ok"
