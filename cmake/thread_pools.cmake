# kvjit_link_thread_pools(TARGET): OpenMP and oneTBB, where there are some; HAS_TBB says so of the latter. A race detector
# doesn't see how their own threads wait.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  find_package(OpenMP QUIET COMPONENTS CXX)
  find_package(TBB QUIET)
endif()

function(kvjit_link_thread_pools target)
  if(TARGET OpenMP::OpenMP_CXX)
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  endif()
  if(TARGET TBB::tbb)
    target_link_libraries(${target} PRIVATE TBB::tbb)
    target_compile_definitions(${target} PRIVATE HAS_TBB)
  endif()
endfunction()
