# cmake -DCXX=... -DNM=... -DOBJCOPY=... -DOBJECTS=FILE,... -DARCHIVES=FILE,... -DOUT=FILE -P static_object.cmake
#   Links the C ABI's OBJECTS, and what they need of ARCHIVES, into one object whose only global names are the C ABI's.
string(REPLACE "," ";" OBJECTS "${OBJECTS}")
string(REPLACE "," ";" ARCHIVES "${ARCHIVES}")
set(linked ${OUT}.linked)
set(whole ${OUT}.whole)
set(weakened ${OUT}.weakened)

# What the C ABI's functions don't reach is dropped.
execute_process(COMMAND ${NM} --defined-only --extern-only ${OBJECTS} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " T kvjit_[a-z0-9_]+" public "${names}")
list(TRANSFORM public REPLACE "^ T " "")
list(TRANSFORM public PREPEND "-Wl,-u," OUTPUT_VARIABLE roots)

# Section groups are dissolved: the final link would drop a group in favour of a program's own group of the same name,
# although local symbols of this object refer to it.
set(link ${CXX} -r -nostdlib -fuse-ld=bfd)
execute_process(COMMAND ${link} -Wl,--gc-sections,--force-group-allocation ${roots} -o ${linked} ${OBJECTS}
                        -Wl,--start-group ${ARCHIVES} -Wl,--end-group
                COMMAND_ERROR_IS_FATAL ANY)

# A relocatable link drops less than the final link of libkvjit.so, which proves that nothing calls the LLVM functions
# that llvm.cmake leaves out: here these symbols become 0.
execute_process(COMMAND ${NM} --undefined-only ${linked} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " U _Z[^\n]*4llvm[^\n]*" missing "${names}")
list(TRANSFORM missing REPLACE "^ U (.+)" "-Wl,--defsym=\\1=0")
execute_process(COMMAND ${link} ${missing} -o ${whole} ${linked} COMMAND_ERROR_IS_FATAL ANY)

list(JOIN public "\n" public)
file(WRITE ${OUT}.public "${public}\n")
# objcopy can't make GNU's unique symbols local unless they are weak.
execute_process(COMMAND ${NM} --defined-only --extern-only ${whole} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " u [^\n]+" unique "${names}")
list(TRANSFORM unique REPLACE "^ u " "")
list(JOIN unique "\n" unique)
file(WRITE ${OUT}.unique "${unique}\n")
execute_process(COMMAND ${OBJCOPY} --weaken-symbols=${OUT}.unique ${whole} ${weakened} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${OBJCOPY} --keep-global-symbols=${OUT}.public ${weakened} ${OUT} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE ${linked} ${whole} ${weakened} ${OUT}.public ${OUT}.unique)
