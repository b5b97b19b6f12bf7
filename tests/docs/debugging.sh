#!/usr/bin/env bash
# The commands of docs/debugging.md print what stands there: debugging.sh DOCUMENT ROOT FOLDER_OF_KVJIT EXAMPLES
# A line that begins with "$ " is run, in one folder, one after the other; each line below it must be printed, where "..."
# is anything and every number any number.
set -euo pipefail

document=$1
root=$2
export PATH=$3:$4:$PATH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset KVJIT_JIT KVJIT_COMPILER KVJIT_LOG KVJIT_RECORD KVJIT_TEMPLATE_DIR KVJIT_DEBUG KVJIT_PERF
export KVJIT_CACHE_DIR=$folder/cache
cd "$folder"
ln -s "$root" source

command -v gdb >/dev/null || { echo "SKIP: there is no gdb"; exit 77; }
gdb -q -batch -ex run /bin/true 2>&1 | grep 'exited normally' >/dev/null ||
    { echo "SKIP: gdb can't run a program here"; exit 77; }

# A line of the document as an extended regular expression. Columns may have other widths.
pattern() {
    sed -E -e 's/[][\.*^$+?(){}|]/\\&/g' -e 's/(\\\.){3}/.*/g' -e 's/ {2,}/ +/g' -e 's/[0-9]+(\\\.[0-9]+)?(e-[0-9]+)?/[0-9.]+(e-[0-9]+)?/g' <<<"$1"
}

command="" seen=0 failed=0
: >"$folder/said"
while IFS= read -r line; do
    line=${line#    }
    if [[ $line == '$ '* ]]; then
        command=${line#'$ '}
        seen=$((seen + 1))
        eval "$command" >"$folder/said" 2>&1 || true # some show how kvjit fails
    elif [[ -n $command ]] && ! grep -qE -e "$(pattern "$line")" "$folder/said"; then
        printf 'after: %s\nnot printed: %s\n' "$command" "$line"
        cat "$folder/said"
        failed=1
    fi
done < <(awk '/^    \$ / { shown = 1 } !/^    / { shown = 0 } shown' "$document")
echo "$seen commands"
[[ $seen -ge 15 ]] || { echo "too few were found"; failed=1; }
exit "$failed"
