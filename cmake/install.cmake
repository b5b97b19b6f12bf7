# Installs what find_package(kvjit 0.1) and pkg-config need. Included where the target kvjit is defined.
include(CMakePackageConfigHelpers)

# All that installing takes and a build makes: `cmake --install` builds nothing, and fails where something is missing.
add_custom_target(kvjit_installable)
foreach(target kvjit kvjit_static kvjit_tool_texts)
  if(TARGET ${target})
    add_dependencies(kvjit_installable ${target})
  endif()
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/kvjit)
install(EXPORT kvjitTargets NAMESPACE kvjit:: DESTINATION ${package})
set(sources ${PROJECT_SOURCE_DIR}/cmake)
install(FILES ${sources}/kvjitConfig.cmake ${sources}/kvjit_bundles.cmake ${sources}/kvjit_target_names.cmake
              ${sources}/embedded_bundle.h.in ${sources}/embedded_bundle.c.in
        DESTINATION ${package})
# Minor versions of 0.x may be incompatible with each other: docs/abi.md.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/kvjitConfigVersion.cmake
                                 VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kvjitConfigVersion.cmake DESTINATION ${package})

set(pc_folder ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH KVJIT_PREFIX_FROM_PC ${pc_folder} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH KVJIT_LIBDIR_FROM_PREFIX ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH KVJIT_INCLUDEDIR_FROM_PREFIX ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
string(REGEX REPLACE "/$" "" KVJIT_PREFIX_FROM_PC ${KVJIT_PREFIX_FROM_PC})
list(TRANSFORM KVJIT_BESIDE_ARCHIVE PREPEND -l OUTPUT_VARIABLE libraries)
list(JOIN libraries " " KVJIT_PC_LIBS_PRIVATE)
string(PREPEND KVJIT_PC_LIBS_PRIVATE "-Wl,-z,nodelete ")
configure_file(${PROJECT_SOURCE_DIR}/cmake/kvjit.pc.in ${CMAKE_CURRENT_BINARY_DIR}/kvjit.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kvjit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
