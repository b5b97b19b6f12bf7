# libkvjit.a (KVJIT_BUILD_STATIC): kvjit and LLVM's loader in one object whose only global names are the C ABI's, so
# that another LLVM in the same program can't clash with this one. Made by GNU's linker and objcopy, in two seconds.
# Included where the target kvjit is defined.

# kvjit_archives(LIBRARY OUT): the archives of LIBRARY and of all that it links, directly or not.
function(kvjit_archives library out)
  set(pending ${library})
  set(seen "")
  set(archives "")
  while(pending)
    list(POP_FRONT pending one)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" one "${one}")
    if(one MATCHES "^\\$<TARGET_FILE:")
      list(APPEND archives ${one})
      continue()
    endif()
    if(NOT TARGET "${one}" OR one IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${one})
    get_target_property(type ${one} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND archives $<TARGET_FILE:${one}>)
    endif()
    get_target_property(needed ${one} INTERFACE_LINK_LIBRARIES)
    if(needed)
      list(APPEND pending ${needed})
    endif()
  endwhile()
  set(${out} ${archives} PARENT_SCOPE)
endfunction()

kvjit_archives(kvjit_core archives)
set(object ${CMAKE_CURRENT_BINARY_DIR}/static/kvjit.o)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/static)
set(maker ${PROJECT_SOURCE_DIR}/cmake/static_object.cmake)
add_custom_command(
  OUTPUT ${object}
  COMMAND ${CMAKE_COMMAND} -DCXX=${CMAKE_CXX_COMPILER} -DNM=${CMAKE_NM} -DOBJCOPY=${CMAKE_OBJCOPY}
          "-DOBJECTS=$<JOIN:$<TARGET_OBJECTS:kvjit>,$<COMMA>>" "-DARCHIVES=$<JOIN:${archives},$<COMMA>>"
          -DOUT=${object} -P ${maker}
  DEPENDS $<TARGET_OBJECTS:kvjit> ${archives} ${maker}
  COMMENT "Linking what libkvjit.a holds"
  VERBATIM)

add_library(kvjit_static STATIC ${object})
add_library(kvjit::kvjit_static ALIAS kvjit_static)
set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
set_target_properties(kvjit_static PROPERTIES OUTPUT_NAME kvjit LINKER_LANGUAGE CXX
                                              ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_include_directories(kvjit_static INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(kvjit_static INTERFACE ${KVJIT_BESIDE_ARCHIVE})
target_link_options(kvjit_static INTERFACE ${KVJIT_STAYS_LOADED})
install(TARGETS kvjit_static EXPORT kvjitTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
