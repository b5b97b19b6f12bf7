#!/usr/bin/env bash
# The line that a failed random call prints repeats that call: reproduces.sh KVJIT_CONFORMANCE ARGUMENT...
#
# Runs one call by the arguments, takes the line that doctest's -s prints though the call passes, and runs that.
set -euo pipefail

conformance=$1
shift

called() { # what was called, and how often a call was judged
    local said
    if ! said=$("$conformance" -s "$@"); then
        printf 'kvjit_conformance %s failed:\n%s\n' "$*" "$said" >&2
        return 1
    fi
    grep -E '^ +(reproduce: |op=)|^\[doctest\] assertions:' <<<"$said"
}
first=$(called "$@")
line=$(sed -n 's/^ *reproduce: kvjit_conformance //p' <<<"$first")
if [[ $(wc -l <<<"$line") != 1 || -z $line ]]; then
    printf "expected one line that reproduces, got '%s' in\n%s\n" "$line" "$first" >&2
    exit 1
fi
again=$(eval "called $line") # the line quotes what a shell would take apart
if [[ $again != "$first" ]]; then
    printf 'expected\n%s\ngot\n%s\n' "$first" "$again" >&2
    exit 1
fi
