#!/usr/bin/env bash
# Replays recorded calls on the emulated processor with AMX: recorded.sh MACHINE KVJIT CALL... (MACHINE as on_amx.sh's)
#
# The calls' kernels are compiled here, into a bundle: that processor would take minutes for what takes this one seconds.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
machine=$1 kvjit=$2
shift 2
if [[ ! -d $machine ]]; then
    exec "$here/on_amx.sh" --machine "$machine" "$kvjit"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

KVJIT_TRACE_SPECS=$work/specs.txt "$kvjit" replay --quiet "$@"
"$kvjit" bundle create "$work/kernels.kvjb" --specs "$work/specs.txt" --targets x86-64-v4-amx
calls=()
for call in "$@"; do calls+=(--with "$call"); done
"$here/on_amx.sh" --machine "$machine" --with "$work/kernels.kvjb" "${calls[@]}" "$kvjit" \
    replay --target x86-64-v4-amx --cache-dir '' --bundle "$work/kernels.kvjb" "$@"
