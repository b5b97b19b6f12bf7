# Kernels compiled at build time as bundles (docs/bundles.md), for projects that use kvjit installed or as a subfolder.
#
#   kvjit_add_bundle(NAME SPECS FILE... TARGETS TARGET... [KEY FILE] [MAX_COMBINATIONS COUNT])
#     A target NAME, part of all, that makes NAME.kvjb in the current binary folder. SPECS: lists of specs
#     (docs/ahead.md). TARGETS: names as `kvjit targets` prints them, sm_90a or x86-64-v3; CPU levels also with
#     features, x86-64-v3+avxvnni. KEY: a private Ed25519 key that signs the bundle. Compiled entries are cached in
#     kvjit-cache of the build folder, so that a changed list compiles only what is new in it. Files that the build
#     generates need an add_custom_command before this call. With Ninja one bundle is made at a time, with
#     KVJIT_BUNDLE_JOBS compiles at once.
#
#   kvjit_embed_bundle(PROGRAM NAME)
#     Links the bundle into PROGRAM, with a header NAME.kvjb.h for
#         kvjit_engine_add_bundle_memory(engine, NAME_kvjb, NAME_kvjb_size, &error)
#     Characters of NAME that a C identifier can't contain become _.
include_guard(GLOBAL)
set(KVJIT_BUNDLE_JOBS 0 CACHE STRING "Compiles at once while a bundle is made; 0: one for each core")

# `kvjit bundle create` is parallel itself.
set_property(GLOBAL APPEND PROPERTY JOB_POOLS kvjit_bundles=1)

# Stops at a name of no target. (`kvjit bundle create` checks that a CPU's features include what they imply.)
function(kvjit_check_target caller name)
  include(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kvjit_target_names.cmake)
  set(features "")
  set(base "${name}")
  if(name MATCHES "^(x86-64[^+]*)\\+(.*)$")
    set(base "${CMAKE_MATCH_1}")
    string(REGEX MATCHALL "\\+[^+]*" features "+${CMAKE_MATCH_2}")
  endif()
  string(REGEX REPLACE "^cuda:[0-9]+$" "cuda" base "${base}")
  string(REGEX REPLACE "^cuda-emulated[+]wgmma$" "cuda-emulated" base "${base}")
  if(NOT base IN_LIST KVJIT_TARGET_NAMES)
    list(JOIN KVJIT_TARGET_NAMES " " names)
    message(FATAL_ERROR "${caller}: TARGETS has \"${name}\"; it takes ${names}, CPU levels also with further features, "
                        "as in x86-64-v3+avxvnni")
  endif()
  foreach(feature IN LISTS features)
    string(SUBSTRING "${feature}" 1 -1 feature)
    if(NOT feature IN_LIST KVJIT_X86_FEATURES AND NOT feature STREQUAL "amx-emulated")
      list(JOIN KVJIT_X86_FEATURES " " names)
      message(FATAL_ERROR "${caller}: TARGETS has \"${name}\"; \"${feature}\" is none of the features ${names}")
    endif()
  endforeach()
endfunction()

# Stops at a missing file, unless the build generates it.
function(kvjit_check_file caller part file)
  get_source_file_property(is_made "${file}" GENERATED)
  if(is_made OR (EXISTS "${file}" AND NOT IS_DIRECTORY "${file}"))
    return()
  endif()
  message(FATAL_ERROR "${caller}: ${part} has ${file}, which is no file, and which no add_custom_command above makes")
endfunction()

function(kvjit_add_bundle name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KEY;MAX_COMBINATIONS" "SPECS;TARGETS")
  set(caller "kvjit_add_bundle(${name})")
  foreach(part SPECS TARGETS)
    if(NOT arg_${part})
      message(FATAL_ERROR "${caller}: ${part} is missing or empty")
    endif()
  endforeach()
  # A project's variable may be unset: a bundle that should be signed would not be.
  foreach(part IN LISTS arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "${caller}: ${part} has no value")
  endforeach()
  if(DEFINED arg_MAX_COMBINATIONS AND NOT arg_MAX_COMBINATIONS MATCHES "^[1-9][0-9]*$")
    message(FATAL_ERROR "${caller}: MAX_COMBINATIONS is ${arg_MAX_COMBINATIONS}; it takes a number from 1 on")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${caller}: it takes SPECS, TARGETS, KEY and MAX_COMBINATIONS, not ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT TARGET kvjit::tool)
    message(FATAL_ERROR "${caller}: the kvjit command makes bundles, and this kvjit was configured without it "
                        "(KVJIT_BUILD_TOOL=OFF)")
  endif()
  foreach(target IN LISTS arg_TARGETS)
    kvjit_check_target("${caller}" "${target}")
  endforeach()

  if(NOT KVJIT_BUNDLE_JOBS MATCHES "^[0-9]+$")
    message(FATAL_ERROR "KVJIT_BUNDLE_JOBS is \"${KVJIT_BUNDLE_JOBS}\"; it takes a number, 0 for one compile for each core")
  endif()
  set(bundle ${CMAKE_CURRENT_BINARY_DIR}/${name}.kvjb)
  set(options --cache-dir ${CMAKE_BINARY_DIR}/kvjit-cache --jobs ${KVJIT_BUNDLE_JOBS})
  set(files "")
  foreach(file IN LISTS arg_SPECS)
    cmake_path(ABSOLUTE_PATH file NORMALIZE)
    kvjit_check_file("${caller}" SPECS "${file}")
    list(APPEND files ${file})
    list(APPEND options --specs ${file})
  endforeach()
  foreach(target IN LISTS arg_TARGETS)
    list(APPEND options --targets ${target})
  endforeach()
  if(DEFINED arg_KEY)
    cmake_path(ABSOLUTE_PATH arg_KEY NORMALIZE)
    kvjit_check_file("${caller}" KEY "${arg_KEY}")
    list(APPEND files ${arg_KEY})
    list(APPEND options --key ${arg_KEY})
  endif()
  if(DEFINED arg_MAX_COMBINATIONS)
    list(APPEND options --max-combinations ${arg_MAX_COMBINATIONS})
  endif()
  add_custom_command(
    OUTPUT ${bundle}
    COMMAND kvjit::tool bundle create ${bundle} ${options}
    DEPENDS ${files} $<TARGET_FILE:kvjit::tool> $<TARGET_FILE:kvjit::kvjit>
    JOB_POOL kvjit_bundles
    COMMENT "Making ${name}.kvjb"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${bundle})
  set_target_properties(${name} PROPERTIES KVJIT_BUNDLE ${bundle})
endfunction()

function(kvjit_embed_bundle program name)
  if(NOT TARGET ${name})
    message(FATAL_ERROR "kvjit_embed_bundle: ${name} is no target; kvjit_add_bundle(${name} ...) makes one")
  endif()
  get_target_property(bundle ${name} KVJIT_BUNDLE)
  if(NOT bundle)
    message(FATAL_ERROR "kvjit_embed_bundle: ${name} is a target, but none of kvjit_add_bundle's")
  endif()
  string(MAKE_C_IDENTIFIER ${name}_kvjb symbol)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/kvjit_bundles)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(ending c)
  if(NOT C IN_LIST languages)
    set(ending cc)
  endif()
  set(source ${folder}/${name}.kvjb.${ending})
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embedded_bundle.h.in ${folder}/${name}.kvjb.h @ONLY)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embedded_bundle.c.in ${source} @ONLY)
  # -fno-lto: a link-time optimiser doesn't see what assembly defines.
  set_source_files_properties(${source} TARGET_DIRECTORY ${program} PROPERTIES OBJECT_DEPENDS ${bundle} COMPILE_OPTIONS -fno-lto)
  target_sources(${program} PRIVATE ${source})
  target_include_directories(${program} PRIVATE ${folder})
  add_dependencies(${program} ${name})
endfunction()
