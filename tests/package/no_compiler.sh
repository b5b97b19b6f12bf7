#!/usr/bin/env bash
# KVJIT_CPU_COMPILER=OFF: it is configured where LLVM has archives and headers, but nothing of Clang. Its library
# runs what a bundle holds, and says what to do about the rest.
# CMakeLists.txt sets the environment: SOURCES, BUILD, WITHOUT (the folder of a libkvjit that was compiled so), WORK,
# LLVM_CMAKE (the folder of LLVMConfig.cmake), CMAKE, CMAKE_GENERATOR, CC, CXX.
set -euo pipefail

fail() {
    printf 'no_compiler.sh: %s\n' "$*" >&2
    exit 1
}

llvm=$WORK/llvm configured=$WORK/build
rm -rf "$WORK"
mkdir -p "$llvm/include" "$llvm/lib/cmake"

# ---- LLVM as someone has it who built its archives alone --------------------------------------------------------

from=$(cd -- "$LLVM_CMAKE/../../.." && pwd -P)
ln -s "$from/include/llvm" "$from/include/llvm-c" "$llvm/include/"
ln -s "$from"/lib/libLLVM*.a "$llvm/lib/"
cp -rL "$LLVM_CMAKE" "$llvm/lib/cmake/llvm"
sed -i '/_cmake_import_check_/d' "$llvm"/lib/cmake/llvm/LLVMExports-*.cmake # it wants the tools and libLLVM to be there

configure() {
    "$CMAKE" -S "$SOURCES" -B "$configured" "-DLLVM_DIR=$llvm/lib/cmake/llvm" -DCMAKE_BUILD_TYPE=Release "$@" 2>&1
}

if said=$(configure); then fail "it is configured without Clang"; fi
said=$(tr -s ' \n' ' ' <<<"$said")
[[ $said == *"needs Clang 19's archives and headers, and LLVM's for x86"*"-DKVJIT_CPU_COMPILER=OFF"* ]] || fail "configuring says $said"
said=$(configure -DKVJIT_CPU_COMPILER=OFF) || fail "it is not configured without Clang: $said"

# ---- What is tested there: nothing that compiles ----------------------------------------------------------------

tests=$(ctest --test-dir "$configured" -N)
for name in unit.split unit.bundle install.tree; do
    [[ $tests == *": $name"* ]] || fail "there is no test $name"
done
for name in example_quickstart process.bundle conformance_properties golden_host; do
    if [[ $tests == *": $name"* ]]; then fail "there is a test $name"; fi
done

# ---- A bundle serves, as code compiled elsewhere does -----------------------------------------------------------

# value NAME TEXT: of the line "NAME value" in it.
value() { sed -n "s/^$1 //p" <<<"$2"; }

unset "${!KVJIT_TEST_@}" KVJIT_JIT KVJIT_COMPILER KVJIT_TEMPLATE_DIR
child=$BUILD/tests/process/process_child
# without_compiler: a process with that library.
without_compiler() { LD_LIBRARY_PATH=$WITHOUT "$child" "$WORK/empty"; }

[[ $(LD_LIBRARY_PATH=$WITHOUT ldd "$child") == *"$WITHOUT/libkvjit.so"* ]] || fail "the library isn't loaded"
compiled=$(KVJIT_TRACE_SPECS=$WORK/specs.txt "$child" "$WORK/cache")
"$BUILD/kvjit" bundle create "$WORK/kernels.kvjb" -q --specs "$WORK/specs.txt" --targets host --cache-dir ''
served=$(KVJIT_TEST_BUNDLE=$WORK/kernels.kvjb without_compiler)
[[ $(value status "$served") == KVJIT_OK ]] || fail "with a bundle: $served"
[[ $(value compiles "$served") == 0 && $(value bundle_hits "$served") == "$(value compiles "$compiled")" ]] ||
    fail "with a bundle: $served; where it is compiled: $compiled"
[[ $(value output "$served") == "$(value output "$compiled")" ]] || fail "the bundle's kernel gives another output"

# ---- Without one, the error names the ways out; the compiler of another build is one -----------------------------

missed=$(without_compiler)
[[ $(value status "$missed") == KVJIT_COMPILER_MISSING ]] || fail "without a bundle: $missed"
for part in 'this build of kvjit has no compiler (KVJIT_CPU_COMPILER=OFF)' kvjit_engine_add_bundle KVJIT_COMPILER \
    "specs.txt: op=MultiHeadCacheAttention,"; do
    [[ $(value message "$missed") == *"$part"* ]] || fail "no \"$part\" in: $missed"
done
lent=$(KVJIT_COMPILER=$BUILD/lib/libkvjit_compiler.so without_compiler)
[[ $(value status "$lent") == KVJIT_OK && $(value compiles "$lent") == "$(value compiles "$compiled")" ]] ||
    fail "with another build's compiler: $lent"
rm -rf "$WORK"
