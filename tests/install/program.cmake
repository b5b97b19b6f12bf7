# What a stranger's project looks like. -DWANTED=0.1: the version of kvjit.
cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 17)

find_package(kvjit ${WANTED} CONFIG REQUIRED)
message(STATUS "kvjit_VERSION ${kvjit_VERSION}")

add_executable(version version.c)
target_link_libraries(version PRIVATE kvjit::kvjit)
add_executable(quickstart quickstart.cc)
target_link_libraries(quickstart PRIVATE kvjit::kvjit)
