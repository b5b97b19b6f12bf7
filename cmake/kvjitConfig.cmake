include(${CMAKE_CURRENT_LIST_DIR}/kvjitTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/kvjit_bundles.cmake)
