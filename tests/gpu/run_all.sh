#!/usr/bin/env bash
# Everything that kvjit can prove and measure on a machine with an NVIDIA GPU: run_all.sh --help.
# shellcheck disable=SC2317 # steps are called by name
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)

readonly all_steps=(machine replay conformance device_tests memcheck racecheck initcheck synccheck benchmark peer specs)
readonly no_gpu=77
readonly command_limit=1500 # seconds after which a command counts as hung
readonly spec_limit=90      # the same for a spec, of which one that hangs keeps the others waiting
# What step_specs measures: many sequences with long caches, so that decode reads from memory; prompts, for prefill.
readonly -A spec_batches=([decode]=64x1:8192 [prefill]=4x4096:4096)
readonly spec_query_heads=32

out='kvjit-gpu-results'
build=
quick=()
device=0
steps=("${all_steps[@]}")

usage() {
    cat <<TEXT
Usage: run_all.sh [OPTION...]

Tests and times kvjit on this machine's NVIDIA GPU. It needs NVIDIA's driver and NVRTC (libnvrtc.so, of the CUDA
toolkit or of the Python package nvidia-cuda-nvrtc), and installs nothing. In the kit the programs lie beside this
script; in a source tree it builds them first, without LLVM, in build-gpu/.

  --out FOLDER     where results.txt, results.json, log.txt and measured.txt go (default: $out)
  --quick          less of everything: some minutes instead of about half an hour
  --steps A,B,...  only these of: ${all_steps[*]}
  --device N       the GPU of this number (default: $device)
  --build FOLDER   use the programs of this build folder, and build nothing
  --help           this text

Each step passes, fails, or is left out (SKIP) with the reason:
  machine       which GPU, driver and NVRTC there are; compiles one program
  replay        recorded calls of all operators: kvjit replay --target cuda
  conformance   random calls and properties against an oracle, several seeds
  device_tests  graphs, streams, memory and errors on the device: kvjit_gpu_test
  memcheck, racecheck, initcheck, synccheck
                compute-sanitizer, where it is installed, on every eighth recorded call; memcheck and initcheck also
                on the device tests that need neither stream nor graph
  benchmark     kvjit_gpu_bench
  peer          PyTorch's attention on the same shapes, in turns with the benchmark, where python3 has PyTorch for CUDA
  specs         kvjit bench on the kernels of docs/gpu_model.md, into measured.txt

Exit status: 0 all that ran passed, 1 something failed, 2 bad arguments, $no_gpu there is no GPU.

Example:
  ./run_all.sh --quick --out /tmp/results && cat /tmp/results/results.txt
TEXT
}

die() {
    printf 'run_all.sh: %s\n' "$*" >&2
    exit 2
}

# ---- Arguments -------------------------------------------------------------------------------------------

# contains WORD WORD...: whether the first is among the others.
contains() {
    local word=$1 other
    shift
    for other in "$@"; do if [[ $word == "$other" ]]; then return 0; fi; done
    return 1
}

read_arguments() {
    local step
    while (($# > 0)); do
        case $1 in
            --help | -h)
                usage
                exit 0
                ;;
            --quick) quick=(--quick) ;;
            --out | --steps | --device | --build)
                (($# > 1)) || die "$1 needs a value"
                case $1 in
                    --out) out=$2 ;;
                    --steps) IFS=, read -r -a steps <<<"$2" ;;
                    --device) device=$2 ;;
                    --build) build=$2 ;;
                esac
                shift
                ;;
            *) die "no option '$1'; --help lists them" ;;
        esac
        shift
    done
    [[ $device =~ ^[0-9]+$ ]] || die "--device takes a number, not '$device'"
    target=cuda:$device
    for step in "${steps[@]}"; do
        contains "$step" "${all_steps[@]}" || die "no step '$step'; there are: ${all_steps[*]}"
    done
}

# ---- Programs --------------------------------------------------------------------------------------------

build_programs() {
    local root=$1
    if [[ ! -f $build/CMakeCache.txt ]]; then
        cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DKVJIT_CPU_JIT=OFF -DKVJIT_BUILD_BENCH=OFF
    fi
    cmake --build "$build" -j "$(nproc)" --target kvjit_tool kvjit_conformance kvjit_gpu_test kvjit_gpu_bench
}

# Sets the paths of programs and recorded calls: the kit's, or a source tree's.
find_programs() {
    local program
    if [[ -x $here/bin/kvjit ]]; then
        kvjit=$here/bin/kvjit conformance=$here/bin/kvjit_conformance
        gpu_test=$here/bin/kvjit_gpu_test gpu_bench=$here/bin/kvjit_gpu_bench
        calls=("$here"/calls/*.safetensors) specs=$here/specs.txt
    else
        local root
        root=$(cd -- "$here/../.." && pwd -P)
        if [[ -z $build ]]; then
            build=$root/build-gpu
            printf 'Building in %s\n' "$build"
            build_programs "$root" >>"$log" 2>&1 || {
                tail -n 20 "$log" >&2
                printf 'run_all.sh: the build failed; %s has all of it\n' "$log" >&2
                exit 1
            }
        fi
        kvjit=$build/kvjit conformance=$build/tests/conformance/kvjit_conformance
        gpu_test=$build/tests/gpu/kvjit_gpu_test gpu_bench=$build/tests/gpu/kvjit_gpu_bench
        calls=("$root"/tests/golden/*/*.safetensors) specs=$root/tests/sass/specs.txt
    fi
    for program in "$kvjit" "$conformance" "$gpu_test" "$gpu_bench"; do
        [[ -x $program ]] || die "there is no $program"
    done
    [[ -f ${calls[0]} ]] || die "there are no recorded calls at ${calls[0]}"
    [[ -f $specs ]] || die "there is no $specs"
}

is_quick() { ((${#quick[@]} > 0)); }

limited() { timeout --kill-after=10 "$command_limit" "$@"; }

# ---- Results ---------------------------------------------------------------------------------------------

result_names=() result_words=() result_seconds=() result_reasons=()

# record NAME pass|fail|SKIP SECONDS REASON
record() {
    result_names+=("$1") result_words+=("$2") result_seconds+=("$3") result_reasons+=("$4")
    printf '%-13s %-5s %5s s  %s\n' "$1" "$2" "$3" "$4" | tee -a "$out/results.txt"
}

# A JSON string of the argument, without its control characters.
json_string() {
    local text
    text=$(printf '%s' "$1" | tr -d '\000-\037')
    text=${text//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

write_json() {
    local i comma=
    {
        printf '{\n"machine": %s,\n"quick": %s,\n"steps": [' "$(json_string "$machine")" "$(is_quick && echo true || echo false)"
        for i in "${!result_names[@]}"; do
            printf '%s\n  {"step": %s, "result": %s, "seconds": %s, "reason": %s}' "$comma" \
                "$(json_string "${result_names[i]}")" "$(json_string "${result_words[i]}")" "${result_seconds[i]}" \
                "$(json_string "${result_reasons[i]}")"
            comma=,
        done
        printf '\n],\n"benchmark": '
        if [[ -f $work/benchmark.json ]]; then cat "$work/benchmark.json"; else echo null; fi
        printf '}\n'
    } >"$out/results.json"
}

# Everything that was found, then the exit status.
finish() {
    local status=0
    if contains fail "${result_words[@]}"; then status=1; fi
    if [[ -f $work/benchmark.txt ]]; then { echo && cat "$work/benchmark.txt"; } >>"$out/results.txt"; fi
    write_json
    printf 'Results: %s/results.txt, results.json, log.txt\n' "$out"
    exit "$status"
}

# run_step NAME: runs step_NAME, if it is wanted, with its output in the log. It sets `reason`, and returns 0, or
# $no_gpu for what can't be tried here, or something else for a failure.
run_step() {
    local started=$SECONDS status=0 word=pass
    contains "$1" "${steps[@]}" || return 0
    printf '\n======== %s\n' "$1" >>"$log"
    reason=
    "step_$1" >>"$log" 2>&1 || status=$?
    if ((status == no_gpu)); then word=SKIP; elif ((status != 0)); then word=fail; fi
    if ((status == 124 || status == 137)); then reason="hung: stopped after $command_limit s"; fi
    record "$1" "$word" "$((SECONDS - started))" "${reason:-see log.txt}"
}

# ---- Steps -----------------------------------------------------------------------------------------------

# The last line of the log.
last_line() { tail -n 1 "$log"; }

step_machine() {
    uname -srm
    ldd --version | head -n 1
    if command -v nvidia-smi >/dev/null; then nvidia-smi || true; fi
    local probe=(op=KeyValueCache head_dim=64 --target "$target" --program store)
    limited "$kvjit" inspect "${probe[@]}" --emit log || {
        reason="no kernel can be compiled: $(last_line)"
        return 1
    }
    limited "$kvjit" inspect "${probe[@]}" --emit identity
    reason=$machine
}

# How many processes work at a time where most of the work is compiling.
processes() {
    local cores
    cores=$(nproc)
    echo $((cores > 8 ? 8 : cores))
}

# start NAME COMMAND...: in the background; its output goes to a file, its process to `pids`.
start() {
    local name=$1
    shift
    limited "$@" >"$work/$name.log" 2>&1 &
    pids+=($!) names+=("$name")
}

# Waits for all that was started; the names of those that failed go to `failed`.
wait_for_all() {
    local i
    for i in "${!pids[@]}"; do
        wait "${pids[i]}" || failed+=("${names[i]}")
        printf -- '-------- %s\n' "${names[i]}"
        cat "$work/${names[i]}.log"
    done
    pids=() names=()
}

step_replay() {
    local pids=() names=() failed=() part i share parts
    parts=$(processes)
    for ((part = 0; part < parts; ++part)); do
        share=()
        for ((i = part; i < ${#calls[@]}; i += parts)); do share+=("${calls[i]}"); done
        if ((${#share[@]} == 0)); then continue; fi
        start "replay-$part" "$kvjit" replay --quiet --target "$target" "${share[@]}"
    done
    wait_for_all
    reason=$(cat "$work"/replay-*.log | awk '/ passed, .* failed, / { p += $1; f += $3; r += $5 }
        END { printf "%d passed, %d failed, %d could not run", p, f, r }')
    ((${#failed[@]} == 0))
}

# What conformance runs: neither the oracle's own test, which is the build's, nor, as properties, random calls.
readonly no_oracle='--source-file-exclude=*golden_oracle*' properties='--test-case-exclude=random*'

# start_conformance NAME ARGUMENT...
start_conformance() {
    local name=$1
    shift
    start "$name" "$conformance" --target "$target" "$no_oracle" "$@"
}

# start_properties PARTS: the properties, parted among so many processes by their numbers. Sets `count` to how many there
# are: each process says that it ran all.
start_properties() {
    local parts=$1 part
    count=$("$conformance" -c "$no_oracle" "$properties" | awk '/passing the current filters/ { print $NF }')
    for ((part = 0; part < parts; ++part)); do
        start_conformance "properties-$part" "$properties" -f=$((part * count / parts + 1)) -l=$(((part + 1) * count / parts))
    done
}

# Random calls compile programs by the hundred.
step_conformance() {
    local seed shard pids=() names=() failed=() count shards seeds=(1 2 3)
    shards=$(processes)
    if is_quick; then seeds=(1); fi
    start_properties "$shards"
    for seed in "${seeds[@]}"; do
        for ((shard = 0; shard < shards; ++shard)); do
            start_conformance "seed$seed-$shard" --test-case='random*' --seed "$seed" --shard "$shard/$shards"
        done
        wait_for_all
    done
    reason="$count properties, and random calls of ${#seeds[@]} seeds"
    if ((${#failed[@]} == 0)); then return 0; fi
    reason="failed: ${failed[*]}"
    return 1
}

step_device_tests() {
    local status=0
    limited "$gpu_test" --target "$target" || status=$?
    reason=$(grep -a 'test cases:' "$log" | tail -n 1)
    return "$status"
}

find_sanitizer() {
    local place
    for place in "$(command -v compute-sanitizer || true)" "${CUDA_HOME:-}/bin/compute-sanitizer" \
        /usr/local/cuda/bin/compute-sanitizer; do
        if [[ -n $place && -x $place ]]; then
            printf '%s\n' "$place"
            return 0
        fi
    done
    return 1
}

# sanitize TOOL: the recorded calls keep their data in host memory; kvjit_gpu_test has device memory, which is what
# memcheck and initcheck watch.
sanitize() {
    local tool=$1 sanitizer i sample=() status=0
    sanitizer=$(find_sanitizer) || {
        reason="compute-sanitizer is not installed"
        return "$no_gpu"
    }
    for ((i = 0; i < ${#calls[@]}; i += 8)); do sample+=("${calls[i]}"); done
    export KVJIT_LINE_INFO=1 # reports name templates' lines
    sanitizer=("$sanitizer" --tool "$tool" --error-exitcode 9)
    limited "${sanitizer[@]}" "$kvjit" replay --quiet --target "$target" "${sample[@]}" >"$work/$tool.log" 2>&1 || status=$?
    if [[ $status == 0 && ($tool == memcheck || $tool == initcheck) ]]; then
        limited "${sanitizer[@]}" "$gpu_test" --target "$target" --test-suite='any machine' >>"$work/$tool.log" 2>&1 || status=$?
    fi
    unset KVJIT_LINE_INFO
    cat "$work/$tool.log"
    if grep -qi 'device not supported' "$work/$tool.log"; then
        reason="compute-sanitizer does not support this device"
        return "$no_gpu"
    fi
    reason=$(grep -a 'ERROR SUMMARY\|RACECHECK SUMMARY' "$work/$tool.log" | tail -n 1)
    return "$status"
}
step_memcheck() { sanitize memcheck; }
step_racecheck() { sanitize racecheck; }
step_initcheck() { sanitize initcheck; }
step_synccheck() { sanitize synccheck; }

# Why PyTorch can't take part; nothing if it can.
why_no_peer() {
    contains peer "${steps[@]}" || {
        echo "not wanted"
        return
    }
    command -v python3 >/dev/null || {
        echo "there is no python3"
        return
    }
    python3 - 2>/dev/null <<'PYTHON' || echo "python3 has no PyTorch that finds the GPU"
import torch
raise SystemExit(0 if torch.cuda.is_available() else 1)
PYTHON
}

# kvjit and the peer take turns, so that both meet the same machine.
step_benchmark() {
    local turn turns=2 failures=0
    if is_quick; then turns=1; fi
    peer_missing=$(why_no_peer)
    limited "$gpu_bench" "${quick[@]}" --target "$target" --only launch --only making --json "$work/bench-0.json" || failures=1
    for ((turn = 1; turn <= turns; ++turn)); do
        limited "$gpu_bench" "${quick[@]}" --target "$target" --only decode --only prefill --json "$work/bench-$turn.json" || failures=1
        if [[ -n $peer_missing ]]; then continue; fi
        limited python3 "$here/torch_peer.py" "${quick[@]}" --device "$device" --json "$work/bench-peer-$turn.json" || peer_failures=1
    done
    "$gpu_bench" --merge "$work"/bench-*.json --json "$work/benchmark.json" >"$work/benchmark.txt" || failures=1
    reason="the table is in results.txt"
    if ((failures != 0)); then reason="some of it failed: see the table in results.txt and log.txt"; fi
    return "$failures"
}

# Its runs were the benchmark's.
step_peer() {
    if ! contains benchmark "${steps[@]}"; then peer_missing="it runs with the benchmark"; fi
    if [[ -n $peer_missing ]]; then
        reason=$peer_missing
        return "$no_gpu"
    fi
    reason="in turns with the benchmark"
    if ((peer_failures != 0)); then reason="some of it failed: see log.txt"; fi
    return "$peer_failures"
}

# ---- The kernels of docs/gpu_model.md --------------------------------------------------------------------

# Those with decode and prefill: name and spec, a line each.
attention_specs() {
    awk '!/^#/ && NF && $NF !~ /^op=(KeyValueCache|Merge|Relayout),/ { print $1, $NF }' "$specs"
}

# bench_spec SPEC ARGUMENT...: JSON, with as many kv heads as there are query heads to share them.
bench_spec() {
    local spec=$1 group=1
    shift
    if [[ ,$spec =~ ,group=([0-9]+) ]]; then group=${BASH_REMATCH[1]}; fi
    timeout --kill-after=10 "$spec_limit" "$kvjit" bench "$spec" --target "$target" --json \
        --kv-heads $((group < spec_query_heads ? spec_query_heads / group : 1)) "$@"
}

# compile_specs FIRST STEP: every STEPth spec. Tiny batches compile the programs, which the disk cache then has. What
# fails here fails again when it is measured.
compile_specs() {
    local i spec
    for ((i = $1; i < ${#spec_lines[@]}; i += $2)); do
        read -r _ spec <<<"${spec_lines[i]}"
        bench_spec "$spec" --batch 1x1:64 --batch 1x64:64 --layers 1 --seconds 0 >/dev/null 2>&1 || true
    done
}

# measured_lines NAME PROGRAM...: the lines of measured.txt for kvjit bench's JSON, whose rows are of these programs.
measured_lines() {
    LC_ALL=C awk -v name="$1" -v programs="${*:2}" '
        BEGIN { split(programs, program, " ") }
        { sub(/,$/, "") }
        $1 == "\"ms\":" { microseconds = 1000 * $2 }
        $1 == "\"bytes\":" { bytes = $2 }
        $1 == "\"operations\":" { printf "%s %s %.3f %s %s\n", name, program[++row], microseconds, bytes, $2 }'
}

# measure_programs NAME SPEC PROGRAM...
measure_programs() {
    local name=$1 spec=$2 program seconds=0.5 batches=()
    shift 2
    if is_quick; then seconds=0.2; fi
    for program in "$@"; do batches+=(--batch "${spec_batches[$program]}"); done
    bench_spec "$spec" "${batches[@]}" --seconds "$seconds" >"$work/spec.json" || {
        echo "$name: can't measure $*: exit status $?"
        return 1
    }
    measured_lines "$name" "$@" <"$work/spec.json" | tee -a "$out/measured.txt"
}

# measure_spec NAME SPEC: both programs by one command, which saves a start. If that fails each has its own, as the GPU
# may lack memory for one of them alone. Those that can't be measured go to `failed`.
measure_spec() {
    local program
    if measure_programs "$@" "${spec_programs[@]}"; then return 0; fi
    for program in "${spec_programs[@]}"; do
        measure_programs "$@" "$program" || failed+=("$1.$program")
    done
}

# Of which commit the programs are, where that is known.
kvjit_version() {
    local version=
    if [[ -f $here/README ]]; then
        version=$(sed -n 's/^Made from kvjit \(.*\)\.$/\1/p' "$here/README")
    else
        version=$(git -C "$here" describe --always --dirty 2>/dev/null) || version=
    fi
    printf '%s\n' "$("$kvjit" --version | head -n 1)${version:+, $version}"
}

measured_header() {
    local driver=
    if command -v nvidia-smi >/dev/null; then
        driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1) || driver=
    fi
    printf '# %s\n' "What kvjit bench measured, by run_all.sh: spec, program, microseconds of a call, bytes, operations" \
        "Decode is ${spec_batches[decode]}, prefill ${spec_batches[prefill]}, both with $spec_query_heads query heads" \
        "$machine${driver:+, driver $driver}, target $target" "$(kvjit_version), $(date -u +%Y-%m-%d)"
}

step_specs() {
    local spec_lines=() spec_programs=(decode prefill) failed=() pids=() line name spec part parts
    mapfile -t spec_lines < <(attention_specs)
    parts=$(processes)
    for ((part = 0; part < parts; ++part)); do
        compile_specs "$part" "$parts" &
        pids+=($!)
    done
    wait "${pids[@]}"
    measured_header >"$out/measured.txt"
    for line in "${spec_lines[@]}"; do
        read -r name spec <<<"$line"
        measure_spec "$name" "$spec"
    done
    local all=$((${#spec_programs[@]} * ${#spec_lines[@]}))
    reason="$((all - ${#failed[@]})) of $all programs are in measured.txt"
    if ((${#failed[@]} == 0)); then return 0; fi
    reason+="; not ${failed[*]}: see log.txt"
    return 1
}

# ---- All together ----------------------------------------------------------------------------------------

# Sets `machine`; leaves with what was found where there is no GPU.
require_gpu() {
    local status=0
    machine=$("$gpu_test" --describe --target "$target" 2>&1) || status=$?
    if ((status == 0)); then return 0; fi
    if ((status != no_gpu)); then
        record machine fail 0 "$machine"
        finish
    fi
    record machine SKIP 0 "${machine#SKIP: }"
    write_json
    printf 'SKIP: %s\n' "${machine#SKIP: }"
    exit "$no_gpu"
}

main() {
    local step
    read_arguments "$@"
    mkdir -p "$out"
    out=$(cd -- "$out" && pwd -P)
    log=$out/log.txt machine='' peer_missing='' peer_failures=0
    : >"$log"
    : >"$out/results.txt"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    export KVJIT_CACHE_DIR=$work/cache
    # kvjit looks for NVRTC in the packages of a virtual environment: let python3's be that one.
    if [[ -z ${VIRTUAL_ENV:-} ]] && command -v python3 >/dev/null; then
        VIRTUAL_ENV=$(python3 -c 'import sys; print(sys.prefix)')
        export VIRTUAL_ENV
    fi
    find_programs
    require_gpu
    printf '%s\n' "$machine"
    for step in "${all_steps[@]}"; do
        run_step "$step"
        if [[ $step == machine ]] && contains fail "${result_words[@]}"; then break; fi
    done
    finish
}

main "$@"
