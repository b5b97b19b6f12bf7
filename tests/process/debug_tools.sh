# shellcheck shell=bash disable=SC2034
# What gdb.sh, perf.sh and debug_code.sh share. Sourced, with the caller's arguments: CHILD TEMPLATES.
set -euo pipefail

child=$1
templates=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Templates under a name of their own, so that nothing is found by chance from the working directory.
cp -r "$templates" "$folder/edited"
cd "$folder"
unset KVJIT_JIT KVJIT_COMPILER KVJIT_RECORD KVJIT_TRACE_SPECS KVJIT_PERF KVJIT_DEBUG
export KVJIT_TEMPLATE_DIR=$folder/edited

skip() {
    echo "SKIP: $1"
    exit 77
}

# expect FILE PATTERN...: each extended regular expression matches a line of the file.
expect() {
    local file=$1 pattern failed=0
    shift
    for pattern; do
        grep -qE -e "$pattern" "$file" || { echo "no line matches: $pattern"; failed=1; }
    done
    [[ $failed -eq 0 ]] || { cat "$file"; exit 1; }
}
