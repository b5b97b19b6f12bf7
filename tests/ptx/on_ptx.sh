#!/usr/bin/env bash
# Runs a command whose GPU is the PTX interpreter: on_ptx.sh [--libraries FOLDER] COMMAND [ARGUMENT...]
#
# PTX_MACHINE has the interpreter's options: docs/gpu_testing.md, "The PTX on this machine".
set -euo pipefail

libraries=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)/build/tests/ptx/lib
if [[ ${1:-} == --libraries ]]; then
    libraries=$2
    shift 2
fi
if (($# == 0)); then
    echo "usage: on_ptx.sh [--libraries FOLDER] COMMAND [ARGUMENT...]" >&2
    exit 2
fi
if [[ ! -e $libraries/libcuda.so.1 || ! -e $libraries/libptx_nvrtc.so ]]; then
    echo "on_ptx.sh: the interpreter's libraries are not in $libraries: ./dev build ptx_cuda ptx_nvrtc" >&2
    exit 2
fi
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export KVJIT_NVRTC=$libraries/libptx_nvrtc.so
exec "$@"
