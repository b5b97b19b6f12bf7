# Lays the code of a library out by how often it runs, with LLVM's BOLT: what runs together lies together, in the order
# in which it runs. COMPILER is replaced.
#
#   cmake -DCOMPILER=libkvjit_compiler.so -DTRAINING=kvjit_compiler_training -DBOLT=llvm-bolt -P bolt.cmake
#
# COMPILER must be linked with --emit-relocs and not be stripped. It is counted how often each of its branches is taken
# while TRAINING runs. The counts are of this very file: others' would not fit.
set(counting ${COMPILER}.counting)
set(profile ${COMPILER}.profile)
set(laid_out ${COMPILER}.laid_out)
file(REMOVE ${profile})

function(run what)
  message(STATUS "BOLT: ${what}")
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    file(REMOVE ${counting} ${profile} ${laid_out})
    message(FATAL_ERROR "${what} failed (${status}): ${ARGN}\n${output}")
  endif()
endfunction()

run("putting counters into the compiler (up to 15 GB of memory)" ${BOLT} ${COMPILER} -instrument -o ${counting}
    --instrumentation-file=${profile})
run("compiling to fill them" ${TRAINING} ${counting})
# Not -use-gnu-stack: a library without that header makes the stacks of its process executable. Names are removed here,
# since strip doesn't know of program headers that lie elsewhere than at a file's begin.
run("laying the compiler out" ${BOLT} ${COMPILER} -o ${laid_out} -data=${profile} -reorder-blocks=ext-tsp
    -reorder-functions=cdsort -split-functions -split-all-cold -split-eh -icf=1 -use-old-text --remove-symtab)
file(RENAME ${laid_out} ${COMPILER})
file(REMOVE ${counting} ${profile})
