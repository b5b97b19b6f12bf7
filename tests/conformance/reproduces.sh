#!/usr/bin/env bash
# The line that a failed random call prints repeats that call: reproduces.sh KVJIT_CONFORMANCE ARGUMENT...
#
# Runs one call by the arguments, takes the line that doctest's -s prints though the call passes, and runs that.
set -euo pipefail

conformance=$1
shift

called() { # what was called, and how often a call was judged
    timeout 120 "$conformance" -s "$@" | grep -E '^ +(reproduce: |op=)|^\[doctest\] assertions:'
}
first=$(called "$@")
line=$(sed -n 's/^ *reproduce: kvjit_conformance //p' <<<"$first")
if [[ $(wc -l <<<"$line") != 1 || -z $line ]]; then
    echo "expected one line that reproduces, got '$line'" >&2
    exit 1
fi
eval "again=\$(called $line)" # the line quotes what a shell would take apart
if [[ $again != "$first" ]]; then
    printf 'expected\n%s\ngot\n%s\n' "$first" "$again" >&2
    exit 1
fi
