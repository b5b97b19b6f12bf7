# Libraries of libkvjit besides LLVM: KVJIT_LIBSODIUM, KVJIT_LIBZSTD; for LLVM KVJIT_LIBZ. Archives are preferred:
# finding, mapping and relocating each shared library takes a process longer than reading a bundle.
option(KVJIT_STATIC_DEPENDENCIES "Have libsodium, libzstd and zlib in libkvjit where their archives are" ON)

function(kvjit_find variable name)
  set(names ${name})
  if(KVJIT_STATIC_DEPENDENCIES)
    list(PREPEND names lib${name}.a)
  endif()
  find_library(${variable} NAMES ${names} REQUIRED)
  mark_as_advanced(${variable})
endfunction()

kvjit_find(KVJIT_LIBSODIUM sodium)
kvjit_find(KVJIT_LIBZSTD zstd)
if(KVJIT_CPU_JIT)
  kvjit_find(KVJIT_LIBZ z)
endif()
