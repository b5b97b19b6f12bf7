# LLVM 19, and Clang 19 for the compiler.
#   kvjit_orc    ORC over JITLink, with Object and TargetParser, static: their symbols stay inside whatever links them, so
#                that another LLVM in the process can't interfere.
#   kvjit_clang  Clang, with LLVM's passes and code generation for x86, static, for the compiler plugin alone; with
#                KVJIT_CPU_COMPILER. The shared libclang-cpp and libLLVM take longer to load, most of it relocations of
#                other machines' code, and another LLVM in the process would share them.
set(KVJIT_LLVM_APT "apt install llvm-19-dev libzstd-dev zlib1g-dev")
set(KVJIT_CLANG_APT "apt install libclang-19-dev")

find_package(LLVM 19.1 CONFIG QUIET HINTS /usr/lib/llvm-19/lib/cmake/llvm)
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "kvjit's CPU backend needs LLVM 19.1: ${KVJIT_LLVM_APT}, or pass -DLLVM_DIR=.../lib/cmake/llvm")
endif()
separate_arguments(KVJIT_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")

# The archives by name, in link order, instead of LLVM's CMake targets with all their dependencies: files that load code
# also hold ORC's IR layers and readers of archives and bitcode, so the targets would link LLVM's IR, assembler and
# passes, whose option tables are built whenever the library is loaded. Nothing calls that code: --gc-sections drops
# what refers to it, and with that the symbols that no archive here defines.
set(KVJIT_ORC_PARTS OrcDebugging OrcJIT RuntimeDyld DebugInfoDWARF JITLink OrcTargetProcess OrcShared Option Object
                    BinaryFormat TargetParser Support Demangle)
foreach(part ${KVJIT_ORC_PARTS})
  if(NOT TARGET LLVM${part})
    message(FATAL_ERROR "kvjit's CPU backend needs libLLVM${part}.a of LLVM ${LLVM_PACKAGE_VERSION}: ${KVJIT_LLVM_APT}")
  endif()
endforeach()
list(TRANSFORM KVJIT_ORC_PARTS REPLACE "(.+)" "libLLVM\\1.a" OUTPUT_VARIABLE KVJIT_LLVM_ARCHIVES)
list(JOIN KVJIT_LLVM_ARCHIVES ":" KVJIT_LLVM_ARCHIVES)
list(TRANSFORM KVJIT_ORC_PARTS REPLACE "(.+)" "$<TARGET_FILE:LLVM\\1>" OUTPUT_VARIABLE KVJIT_ORC_FILES)

add_library(kvjit_orc INTERFACE)
target_include_directories(kvjit_orc SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_compile_definitions(kvjit_orc INTERFACE ${KVJIT_LLVM_DEFINITIONS})
target_link_libraries(kvjit_orc INTERFACE ${KVJIT_ORC_FILES} ${KVJIT_LIBZ} ${KVJIT_LIBZSTD} ${CMAKE_DL_LIBS})
# By name: "ALL" would hide the exports of our own static libraries too.
target_link_options(kvjit_orc INTERFACE "LINKER:--exclude-libs,${KVJIT_LLVM_ARCHIVES}" LINKER:--gc-sections
                    LINKER:--as-needed)

if(NOT KVJIT_CPU_COMPILER)
  return()
endif()
set(KVJIT_CLANG_PARTS CodeGen Frontend Driver Serialization Parse Sema APINotes Edit Analysis ASTMatchers Support AST
                      Lex Basic)
list(TRANSFORM KVJIT_CLANG_PARTS REPLACE "(.+)" "${LLVM_LIBRARY_DIR}/libclang\\1.a" OUTPUT_VARIABLE KVJIT_CLANG_FILES)
# Of LLVM all archives: the linker takes what Clang and the code generation of x86 refer to.
set(KVJIT_LLVM_FILES ${LLVM_AVAILABLE_LIBS})
list(FILTER KVJIT_LLVM_FILES INCLUDE REGEX "^LLVM.")
list(TRANSFORM KVJIT_LLVM_FILES REPLACE "(.+)" "${LLVM_LIBRARY_DIR}/lib\\1.a")
set(missing)
foreach(file ${KVJIT_CLANG_FILES} ${KVJIT_LLVM_FILES} ${LLVM_LIBRARY_DIR}/libLLVMX86CodeGen.a
             ${LLVM_INCLUDE_DIR}/clang/Frontend/CompilerInstance.h)
  if(NOT EXISTS ${file})
    list(APPEND missing ${file})
  endif()
endforeach()
if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "kvjit's CPU compiler needs Clang 19's archives and headers, and LLVM's for x86: "
                      "${KVJIT_CLANG_APT}, or pass -DKVJIT_CPU_COMPILER=OFF to run kernels out of bundles alone. "
                      "Missing: ${missing}")
endif()

add_library(kvjit_clang INTERFACE)
target_include_directories(kvjit_clang SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_compile_definitions(kvjit_clang INTERFACE ${KVJIT_LLVM_DEFINITIONS})
target_link_libraries(kvjit_clang INTERFACE
  -Wl,--start-group ${KVJIT_CLANG_FILES} ${KVJIT_LLVM_FILES} -Wl,--end-group ${KVJIT_LIBZ} ${KVJIT_LIBZSTD}
  ${CMAKE_DL_LIBS})
target_link_options(kvjit_clang INTERFACE LINKER:--gc-sections LINKER:--as-needed LINKER:--no-undefined)
