# Programs with libkvjit.a in them. -DSOURCES: kvjit's tests. -DFULLY_STATIC=ON: no shared library at all. -DLIBLLVM,
# -DLLVM_INCLUDE: the shared libLLVM and its headers.
cmake_minimum_required(VERSION 3.25)
project(programs LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 23)  # of the tests' call builder

find_package(kvjit CONFIG REQUIRED)
add_library(call STATIC
  ${SOURCES}/process/call.cc ${SOURCES}/call/call.cc ${SOURCES}/support/guarded_buffer.cc ${SOURCES}/../calls/arrays.cc
  ${SOURCES}/../calls/tensors.cc
  ${SOURCES}/../oracle/elements.cc ${SOURCES}/../oracle/layout.cc)
target_include_directories(call PUBLIC ${SOURCES} ${SOURCES}/..)
target_link_libraries(call PUBLIC kvjit::kvjit_static)

add_executable(version ${SOURCES}/install/version.c)
target_link_libraries(version PRIVATE kvjit::kvjit_static)
kvjit_add_bundle(kernels SPECS specs.txt TARGETS host)
add_executable(bundled ${SOURCES}/install/static/bundled.cc)
target_link_libraries(bundled PRIVATE call)
kvjit_embed_bundle(bundled kernels)
if(FULLY_STATIC)
  target_link_options(bundled PRIVATE -static LINKER:--gc-sections)
else()
  add_executable(another_llvm ${SOURCES}/install/static/another_llvm.cc)
  target_include_directories(another_llvm SYSTEM PRIVATE ${LLVM_INCLUDE})
  target_link_libraries(another_llvm PRIVATE call ${LIBLLVM})
endif()
