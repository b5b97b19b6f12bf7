# The names that CMake knows are those that kvjit knows.
include(${NAMES})
execute_process(COMMAND ${TOOL} targets --names OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
list(JOIN KVJIT_TARGET_NAMES "\n" known)
if(NOT "${known}\n" STREQUAL "${listed}")
  message(FATAL_ERROR "kvjit targets --names prints\n${listed}\nbut cmake/kvjit_target_names.cmake has\n${known}")
endif()
