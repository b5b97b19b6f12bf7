#!/usr/bin/env bash
# perf names kernels' functions, walks from them to the caller of kvjit_run, and shows templates' lines: perf.sh CHILD
# TEMPLATES
# shellcheck disable=SC1091,SC2154 # it is not followed
source "${BASH_SOURCE[0]%/*}/debug_tools.sh"

command -v perf >/dev/null || skip "there is no perf"
perf record -q -e cpu-clock -o probe.data true >probe 2>&1 || skip "perf can't record here: $(head -1 probe)"

export KVJIT_TEST_RUNS=100000 KVJIT_DEBUG=frames JITDUMPDIR=$folder
# Kernels are compiled before: the profile is of running them.
KVJIT_TEST_RUNS=1 "$child" "$folder/cache" >/dev/null

record() {
    # shellcheck disable=SC2016 # the inner shell's
    perf record -q -e cpu-clock -F 2000 -g -k 1 -o perf.data sh -c 'echo $$ >pid; exec "$@"' sh "$child" \
        "$folder/cache" >said 2>&1
}

# The map: names that a person reads.
KVJIT_PERF=1 record
map=/tmp/perf-$(cat pid).map
cp "$map" map
perf report -i perf.data --stdio --no-children -g caller -G >reported 2>/dev/null
rm -f "$map"
expect map ' attend_decode-[0-9a-f]{8}:kvjit_attend_decode$' ' attend_decode-[0-9a-f]{8}:kvjit::[a-z_]+'
if grep -E '_Z[A-Z0-9]' map; then
    echo "the map has a mangled name" && exit 1
fi
expect reported '[0-9]%.* attend_decode-[0-9a-f]{8}:k'

# jitdump: the same with code and lines.
KVJIT_PERF=jitdump record
perf inject --jit -i perf.data -o jitted.data >injected 2>&1 || skip "perf can't inject: $(head -1 injected)"
perf report -i jitted.data --stdio --no-children -g caller >reported 2>/dev/null
expect reported '[0-9]%.*jitted-[0-9]+-[0-9]+\.so .* kvjit::score_chunk' ' kvjit_attend_decode$' ' kvjit::rt::CallPlan::run$' \
    ' kvjit_run$'
perf annotate -i jitted.data --stdio -l -s kvjit::score_chunk >annotated 2>/dev/null
expect annotated ' decode_panel\.h:[0-9]+$' 'KVJIT_NOINLINE void score_chunk\(Panel& panel, KeyRange keys\) \{'
