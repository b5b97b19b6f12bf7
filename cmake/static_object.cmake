# cmake -DCXX=... -DNM=... -DOBJCOPY=... -DOBJECTS=FILE,... -DARCHIVES=FILE,... -DOUT=FILE -P static_object.cmake
#   One object of the C ABI's OBJECTS and what they reach in ARCHIVES, in which all names but the C ABI's are local.
string(REPLACE "," ";" OBJECTS "${OBJECTS}")
string(REPLACE "," ";" ARCHIVES "${ARCHIVES}")
set(linked ${OUT}.linked)
set(whole ${OUT}.whole)
set(weakened ${OUT}.weakened)

# All else is left out that they don't reach.
execute_process(COMMAND ${NM} --defined-only --extern-only ${OBJECTS} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " T kvjit_[a-z0-9_]+" public "${names}")
list(TRANSFORM public REPLACE "^ T " "")
list(TRANSFORM public PREPEND "-Wl,-u," OUTPUT_VARIABLE roots)

# No section groups come out: the last link would drop a group for a program's own of the same name, although what is
# local to this object refers to it.
set(link ${CXX} -r -nostdlib -fuse-ld=bfd)
execute_process(COMMAND ${link} -Wl,--gc-sections,--force-group-allocation ${roots} -o ${linked} ${OBJECTS}
                        -Wl,--start-group ${ARCHIVES} -Wl,--end-group
                COMMAND_ERROR_IS_FATAL ANY)

# A link that isn't the last one drops less than libkvjit.so's, which shows that nobody calls what LLVM's parts ask of
# those that are left out (llvm.cmake): here it is nothing.
execute_process(COMMAND ${NM} --undefined-only ${linked} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " U _Z[^\n]*4llvm[^\n]*" missing "${names}")
list(TRANSFORM missing REPLACE "^ U (.+)" "-Wl,--defsym=\\1=0")
execute_process(COMMAND ${link} ${missing} -o ${whole} ${linked} COMMAND_ERROR_IS_FATAL ANY)

list(JOIN public "\n" public)
file(WRITE ${OUT}.public "${public}\n")
# objcopy leaves GNU's unique names as they are, unless they are weak.
execute_process(COMMAND ${NM} --defined-only --extern-only ${whole} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " u [^\n]+" unique "${names}")
list(TRANSFORM unique REPLACE "^ u " "")
list(JOIN unique "\n" unique)
file(WRITE ${OUT}.unique "${unique}\n")
execute_process(COMMAND ${OBJCOPY} --weaken-symbols=${OUT}.unique ${whole} ${weakened} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${OBJCOPY} --keep-global-symbols=${OUT}.public ${weakened} ${OUT} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE ${linked} ${whole} ${weakened} ${OUT}.public ${OUT}.unique)
