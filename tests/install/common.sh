# shellcheck shell=bash disable=SC2034
# What the tests of an installed tree share; sourced. CMakeLists.txt sets the environment.
set -euo pipefail

fail() {
    printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2
    exit 1
}

# The version that the change log begins with: nothing of the build told us.
version=$(sed -n 's/^## \([0-9]*\.[0-9]*\.[0-9]*\).*/\1/p' "$KVJIT_TEST_SOURCES/CHANGELOG.md" | head -n 1)
IFS=. read -r major minor patch <<<"$version"
serves=("$major.$minor" "$version")
serves_not=("$major.$((minor + 1))" "$((major + 1)).0" "$major.$minor.$((patch + 1))")

# check_programs FOLDER: the built programs run, and the loaded library is the one of the change log's version.
check_programs() {
    local said
    said=$("$1/version") || fail "version failed: $said"
    [[ $said == "$version" ]] || fail "the library says $said; CHANGELOG.md has $version"
    said=$("$1/quickstart" 2>&1) || [[ $KVJIT_TEST_RUNS_STEP == 0 ]] || fail "quickstart failed: $said"
    if [[ $KVJIT_TEST_RUNS_STEP == 0 ]]; then return; fi
    [[ $said == 'attn_output[0, 0, 0] = 0.00125286' ]] || fail "quickstart says $said"
}
