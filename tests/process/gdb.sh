#!/usr/bin/env bash
# gdb stops in a kernel, walks to its caller, finds the template's text and, with KVJIT_DEBUG=1, variables: gdb.sh CHILD
# TEMPLATES
# shellcheck disable=SC1091,SC2154 # it is not followed
source "${BASH_SOURCE[0]%/*}/debug_tools.sh"

command -v gdb >/dev/null || skip "there is no gdb"
gdb -q -batch -ex run /bin/true >probe 2>&1 || true
grep -q 'exited normally' probe || skip "gdb can't run a program here: $(tail -1 probe)"

# session FILE COMMAND...: what gdb says to the commands, after it stopped at kvjit_attend_decode.
session() {
    local file=$1 command
    shift
    local commands=(-ex 'set breakpoint pending on' -ex 'break kvjit_attend_decode' -ex run)
    for command; do commands+=(-ex "$command"); done
    gdb -q -batch "${commands[@]}" --args "$child" "$folder/cache" >"$file" 2>&1
}

# The usual code: a backtrace and lines, without a switch.
session usual bt
expect usual 'hit Breakpoint 1' 'kvjit_attend_decode \(\) at templates/cpu/attend_decode\.cc:[0-9]+' 'in kvjit::rt::'

# Locals, arguments and the texts of KVJIT_TEMPLATE_DIR.
export KVJIT_DEBUG=1
session locals bt list 'print *item' step 'info args' 'info source'
# shellcheck disable=SC2016 # they are patterns
expect locals "kvjit_attend_decode \(args=0x[0-9a-f]+, item=0x[0-9a-f]+\) at $folder/edited/cpu/attend_decode\.cc:[0-9]+" \
    'kvjit::attend_item\(\*args, \*item\);' '^\$1 = \{' '^args = ' "Located in $folder/edited/cpu/"
# The kernel's frame and what was printed of it; a frame of the C library hides its own where its symbols are installed.
# shellcheck disable=SC2016 # it is a pattern
if grep -E '^#[0-9]+ .*kvjit_attend_decode|^\$1 =|^(args|item) =' locals | grep 'optimized out'; then
    echo "KVJIT_DEBUG=1 hides a variable" && cat locals && exit 1
fi

# A CUDA kernel, as the emulator runs it.
export KVJIT_TEST_TARGET=cuda-emulated
session emulated 'tbreak attend_dot' continue 'info args' 'print work.sequence' 'info source'
# shellcheck disable=SC2016 # they are patterns
expect emulated "kvjit_attend_decode \(args=.*\) at $folder/edited/cuda/attend_decode_dot\.cu:[0-9]+" \
    '^work = ' '^\$1 = \{query_begin = ' "Located in $folder/edited/cuda/"
