#!/usr/bin/env bash
# libkvjit.a: what names it has; in a dynamic program, beside another LLVM; in a program without any shared library.
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname -- "$0")/common.sh"

library=$KVJIT_TEST_TREE/$KVJIT_TEST_LIBDIR
if [[ ! -f $library/libkvjit.a ]]; then
    echo "SKIP: this build has no libkvjit.a (KVJIT_BUILD_STATIC)"
    exit 77
fi

# ---- Its names are those of the shared library, and nothing else -----------------------------------------------

names() { nm --defined-only "$@" | awk 'NF == 3 { print $3 }' | sort; }
diff <(names --extern-only "$library/libkvjit.a") <(names --dynamic "$library/libkvjit.so") ||
    fail "libkvjit.a and libkvjit.so have different names"
[[ $(names --extern-only "$library/libkvjit.a") == *kvjit_engine_create* ]] || fail "libkvjit.a has no names"
if readelf --section-groups --wide "$library/libkvjit.a" | grep 'COMDAT'; then fail "libkvjit.a has section groups"; fi
if [[ $KVJIT_TEST_RUNS_STEP == 0 ]]; then exit 0; fi
if [[ ${CXXFLAGS:-} == *-fsanitize=* ]]; then
    echo "SKIP: sanitizers want to be linked dynamically"
    exit 77
fi

# ---- Found by CMake: programs that start shared libraries ------------------------------------------------------

program=$KVJIT_TEST_WORK/static compiler=$library/libkvjit_compiler.so child=$KVJIT_BUILD/tests/process/process_child
rm -rf "$program"
mkdir "$program"
cp "$KVJIT_TEST_SOURCES/tests/install/static/program.cmake" "$program/CMakeLists.txt"
compiled=$(KVJIT_TRACE_SPECS=$program/specs.txt "$child" "$program/cache" | sed -n 's/^output //p')
[[ -n $compiled ]] || fail "process_child says nothing"

# build FOLDER ARGUMENT...
build() {
    "$CMAKE" -S "$program" -B "$program/$1" "-DCMAKE_PREFIX_PATH=$KVJIT_TEST_TREE" "-DSOURCES=$KVJIT_TEST_SOURCES/tests" "${@:2}" >/dev/null
    "$CMAKE" --build "$program/$1" >"$program/$1.log" 2>&1 || fail "$1 is not built: $(cat "$program/$1.log")"
}

# says NAME TEXT: the line "NAME ..." of what a program said holds TEXT.
says() {
    local line
    line=$(grep "^$1 " <<<"$said") || fail "no line \"$1\" in: $said"
    [[ $line == *"$2"* ]] || fail "no \"$2\" in: $line"
}

if [[ $KVJIT_TEST_LIBLLVM == *-NOTFOUND ]]; then
    echo "SKIP: there is no shared libLLVM, which another_llvm is linked with"
    exit 77
fi
build dynamic "-DLIBLLVM=$KVJIT_TEST_LIBLLVM" "-DLLVM_INCLUDE=$KVJIT_TEST_LLVM_INCLUDE"
said=$("$program/dynamic/bundled") || fail "bundled says $said"
says output "$compiled"
says compiles ' 0'
says unwinds ' 1'
says missing "KVJIT_COMPILER_MISSING: kvjit's compiler can't be opened: found nowhere; tried $program/dynamic/libkvjit"
ln -s "$compiler" "$program/dynamic/"
said=$(KVJIT_TEST_CACHE=$program/filled "$program/dynamic/bundled") || fail "with a compiler beside it, bundled says $said"
says compiles ' 1'
if [[ $said == *missing* ]]; then fail "with a compiler beside it, bundled says $said"; fi

needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
if needed "$program/dynamic/bundled" | grep kvjit; then fail "bundled needs a libkvjit"; fi

needed "$program/dynamic/another_llvm" | grep >/dev/null '^libLLVM' || fail "another_llvm has no libLLVM"
if nm -D "$program/dynamic/another_llvm" | grep ' _ZN4llvm'; then fail "kvjit's LLVM and libLLVM share names"; fi
nm "$program/dynamic/another_llvm" | grep >/dev/null ' t _ZN4llvm3orc16ExecutionSession' || fail "kvjit's LLVM is not in it"
said=$("$program/dynamic/another_llvm") || fail "another_llvm says $said"
[[ $said == "llvm 41
kvjit $compiled
llvm 42
kvjit $compiled" ]] || fail "another_llvm says $said; the kernel's output is $compiled"

# ---- By pkg-config ----------------------------------------------------------------------------------------------

read -ra cxx_flags <<<"${CXXFLAGS:-}"
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$library/pkgconfig
    read -ra flags <<<"$(pkg-config --cflags kvjit) $(pkg-config --libs --static kvjit | sed s/-lkvjit/-l:libkvjit.a/)"
    "$CXX" -std=c++17 "${cxx_flags[@]}" -o "$program/quickstart" "$KVJIT_TEST_SOURCES/examples/quickstart.cc" "${flags[@]}"
    if needed "$program/quickstart" | grep kvjit; then fail "quickstart needs a libkvjit"; fi
    said=$(KVJIT_COMPILER=$compiler "$program/quickstart")
    [[ $said == 'attn_output[0, 0, 0] = 0.00125286' ]] || fail "quickstart says $said"
fi

# ---- Without any shared library ---------------------------------------------------------------------------------

build static -DFULLY_STATIC=ON
if readelf -lW "$program/static/bundled" | grep INTERP; then fail "bundled has a dynamic linker"; fi
ln -s "$compiler" "$program/static/" # not opened
said=$("$program/static/bundled") || fail "without shared libraries, bundled says $said"
says output "$compiled"
says compiles ' 0'
says unwinds ' 1'
says missing 'KVJIT_COMPILER_MISSING: there is no compiler here: this program was linked with -static'
says missing 'specs.txt: op=Merge,head_dim=24'
says cuda "KVJIT_CUDA_ERROR: NVIDIA's driver can't be opened: this program was linked with -static"
says nvrtc "KVJIT_COMPILER_MISSING: NVRTC, which compiles CUDA kernels, can't be opened: this program was linked"
said=$(KVJIT_TEST_CACHE=$program/filled "$program/static/bundled")
if [[ $said == *missing* ]]; then fail "with what another program cached, bundled says $said"; fi

if command -v pkg-config >/dev/null; then
    read -ra flags <<<"$(pkg-config --cflags --libs --static kvjit)"
    "$CC" -static -o "$program/version" "$KVJIT_TEST_SOURCES/tests/install/version.c" "-L$program/static" "${flags[@]}" \
        2>"$program/warnings.log" || fail "version is not built: $(cat "$program/warnings.log")"
    [[ $("$program/version") == "$version" ]] || fail "without shared libraries, version says another one"
fi
rm -rf "$program"
