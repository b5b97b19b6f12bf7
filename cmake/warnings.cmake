# Warnings for every target of this project.
add_library(kvjit_warnings INTERFACE)
target_compile_options(kvjit_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  # GCC 12 sees an overlap in std::string concatenation that is not there (bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
