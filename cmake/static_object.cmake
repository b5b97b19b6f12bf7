# cmake -DCXX=... -DNM=... -DOBJCOPY=... -DOBJECTS=FILE,... -DARCHIVES=FILE,... -DOPTIONS=... -DOUT=FILE -P static_object.cmake
#   One object of the C ABI's OBJECTS and what they reach in ARCHIVES, in which all names but the C ABI's are local.
string(REPLACE "," ";" OBJECTS "${OBJECTS}")
string(REPLACE "," ";" ARCHIVES "${ARCHIVES}")
set(whole ${OUT}.whole)
set(weakened ${OUT}.weakened)

# All else is left out that they don't reach.
execute_process(COMMAND ${NM} --defined-only --extern-only ${OBJECTS} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " T kvjit_[a-z0-9_]+" public "${names}")
list(TRANSFORM public REPLACE "^ T " "")
list(TRANSFORM public PREPEND "-Wl,-u," OUTPUT_VARIABLE roots)

# No section groups come out: the last link would drop a group for a program's own of the same name, although what is
# local to this object refers to it.
execute_process(COMMAND ${CXX} -r -nostdlib -fuse-ld=bfd -Wl,--gc-sections,--force-group-allocation ${roots} ${OPTIONS}
                        -o ${whole} ${OBJECTS} -Wl,--start-group ${ARCHIVES} -Wl,--end-group
                COMMAND_ERROR_IS_FATAL ANY)

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
file(REMOVE ${whole} ${weakened} ${OUT}.public ${OUT}.unique)
