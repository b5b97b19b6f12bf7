#!/usr/bin/env bash
# pkg-config knows the version and the flags; a C and a C++ program build with them, and run.
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname -- "$0")/common.sh"

if ! command -v pkg-config >/dev/null; then
    echo "SKIP: there is no pkg-config"
    exit 77
fi
export PKG_CONFIG_PATH=$KVJIT_TEST_TREE/$KVJIT_TEST_LIBDIR/pkgconfig
build=$KVJIT_TEST_WORK/pkg_config
rm -rf "$build"
mkdir "$build"

# build COMPILER PROGRAM ARGUMENT...
build() {
    local compiler=$1 program=$2 flags
    read -ra flags <<<"$(pkg-config --cflags --libs kvjit)"
    "$compiler" "${@:3}" -o "$build/$program" "${flags[@]}" "-Wl,-rpath,$KVJIT_TEST_TREE/$KVJIT_TEST_LIBDIR"
}

[[ $(pkg-config --modversion kvjit) == "$version" ]] || fail "the version is $(pkg-config --modversion kvjit)"
pkg-config --exists "kvjit >= ${serves[0]}" || fail "${serves[0]} is not served"
for wanted in "${serves_not[@]}"; do
    if pkg-config --exists "kvjit >= $wanted"; then fail "$wanted is served"; fi
done
read -ra c_flags <<<"${CFLAGS:-}"
read -ra cxx_flags <<<"${CXXFLAGS:-}"
build "$CC" version -std=c11 "${c_flags[@]}" "$KVJIT_TEST_SOURCES/tests/install/version.c"
build "$CXX" quickstart -std=c++17 "${cxx_flags[@]}" "$KVJIT_TEST_SOURCES/examples/quickstart.cc"
check_programs "$build"
