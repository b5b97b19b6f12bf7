include(${CMAKE_CURRENT_LIST_DIR}/kvjitTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/kvjit_bundles.cmake)

# It has no components: one that is asked for is missing.
foreach(component IN LISTS ${CMAKE_FIND_PACKAGE_NAME}_FIND_COMPONENTS)
  set(${CMAKE_FIND_PACKAGE_NAME}_${component}_FOUND FALSE)
  if(${CMAKE_FIND_PACKAGE_NAME}_FIND_REQUIRED_${component})
    set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
    set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE "kvjit has no components, so none that is called ${component}")
  endif()
endforeach()
