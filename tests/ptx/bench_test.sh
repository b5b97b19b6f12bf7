#!/usr/bin/env bash
# bench_test.sh KVJIT LIBRARIES RECORDING: `kvjit bench` on the PTX interpreter, of which it is known that a call's bytes
# and operations are the CPU's. The interpreter checks every address; its times mean nothing.
set -euo pipefail

kvjit=$1 libraries=$2 recording=$3
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
export PTX_MACHINE=capability=9.0,multiprocessors=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() {
    echo "bench_test.sh: $*" >&2
    exit 1
}

on_ptx() {
    "$here/on_ptx.sh" --libraries "$libraries" "$kvjit" "$@"
}

# figures FILE: what doesn't depend on the machine.
figures() {
    grep -oE '"(spec|batch|layers|rounds|bytes|operations)": [^,]+' "$1"
}

# same_work ARITHMETIC ARGUMENT...: the GPU does the CPU's work, held against this arithmetic.
same_work() {
    local arithmetic=$1
    shift
    "$kvjit" bench --json --seconds 0 --threads 1 "$@" >"$work/cpu.json"
    on_ptx bench --json --seconds 0 --target cuda "$@" >"$work/gpu.json"
    diff <(figures "$work/cpu.json") <(figures "$work/gpu.json") || die "other work on the GPU: $*"
    grep -q "\"arithmetic\": \"$arithmetic\"" "$work/gpu.json" || die "not held against $arithmetic: $*"
    grep -q '"device": "PTX interpreter' "$work/gpu.json" || die "the device has no name"
    "$kvjit" compare "$work/cpu.json" "$work/gpu.json" | grep -q 'B on PTX interpreter' || die "compare: $*"
}

# refused TEXT ARGUMENT...: exit status 2, and the reason.
refused() {
    local text=$1 status=0
    shift
    on_ptx bench head_dim=64 "$@" >"$work/out" 2>"$work/said" || status=$?
    [[ $status == 2 ]] && grep -qF -- "$text" "$work/said" && return
    cat "$work/out" "$work/said" >&2
    die "bench $*: exit status $status, not 2 with '$text'"
}

# NVRTC may be missing: then this says so, which the test's driver takes for "skipped".
on_ptx inspect head_dim=64 --target cuda --program decode >"$work/out" 2>&1 || { cat "$work/out" && exit 1; }

small=(--kv-heads 1 --batch '2x1:70+1x3:5')
same_work 'tensor cores' head_dim=64,group=2,quant_bit=8,cache_mode=page_table,page_size=16 "${small[@]}" --layers 3
same_work 'multiply-add' op=MultiHeadAttention,head_dim=64,group=2,t1=f32,attn_mask=2,is_alibi=1,has_soft_cap=1 "${small[@]}" --layers 2
same_work 'tensor cores' op=KeyValueCache,head_dim=64,cache_mode=token_table,index_type=i32 "${small[@]}" --layers 1
same_work 'tensor cores' head_dim=64,cache_mode=block_pointers,page_size=8,layout=L2HTD,quant_bit=8 "${small[@]}" --layers 1
same_work 'tensor cores' op=Merge,head_dim=64 "${small[@]}" --layers 1
cp -- "$recording" "$work/call.safetensors"
same_work '[a-z -]*' "$work/call.safetensors"

refused 'the GPU is of sm_90a' --target sm_80
refused 'GPU 1 is asked for' --target cuda:1
refused 'no CPU' --target cuda --threads 2
refused 'no GPU' --target cuda-emulated
refused 'there is memory for' --target cuda --batch 6000x1:10000
echo "kvjit bench on the PTX interpreter: ok"
