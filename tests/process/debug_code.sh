#!/usr/bin/env bash
# Code of KVJIT_DEBUG is compiled for it, gives the same results, and never serves without it: debug_code.sh CHILD
# TEMPLATES
# shellcheck disable=SC1091,SC2154 # it is not followed
source "${BASH_SOURCE[0]%/*}/debug_tools.sh"

# run FILE [NAME=VALUE...]: the child's report.
run() {
    local file=$1
    shift
    env "$@" "$child" "$folder/cache" >"$file"
    expect "$file" '^status KVJIT_OK$'
}
output() { grep '^output ' "$1"; }

run optimised
expect optimised '^compiles 4$'
for value in 1 frames; do
    run cold KVJIT_DEBUG=$value
    expect cold '^compiles 4$'
    run warm KVJIT_DEBUG=$value
    expect warm '^compiles 0$' '^disk_hits 4$'
    [[ $(output cold) == "$(output warm)" ]]
    [[ $value == 1 || $(output cold) == "$(output optimised)" ]] || { echo "frames change a result"; exit 1; }
done
run again
expect again '^compiles 0$' '^disk_hits 4$'

# Without a compiler, any maker's code of a source serves: not that of another KVJIT_DEBUG.
env KVJIT_DEBUG=1 "$child" "$folder/other" >/dev/null
KVJIT_COMPILER=/nowhere "$child" "$folder/other" >missing
expect missing '^status KVJIT_COMPILER_MISSING$'
KVJIT_COMPILER=/nowhere KVJIT_DEBUG=1 "$child" "$folder/other" >found
expect found '^disk_hits 4$'
