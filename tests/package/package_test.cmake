# A user's hour in short: installs kvjit, builds tests/package/app against it, runs it without compiling, changes its
# specs, and breaks what can be broken when configuring and building.
file(REMOVE_RECURSE ${WORK})
file(COPY ${APP}/ DESTINATION ${WORK}/app)
file(RENAME ${WORK}/app/project.cmake ${WORK}/app/CMakeLists.txt) # in our tree each CMakeLists.txt is a folder of tests

# run(FAILS|WORKS VARIABLE COMMAND...): its output into VARIABLE.
function(run expected variable)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE out ERROR_VARIABLE out RESULT_VARIABLE status)
  if(expected STREQUAL WORKS AND NOT status EQUAL 0 OR expected STREQUAL FAILS AND status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: exit status ${status}\n${out}")
  endif()
  string(REGEX REPLACE "[ \n]+" " " out "${out}") # CMake breaks its messages' lines
  set(${variable} "${out}" PARENT_SCOPE)
endfunction()

function(expect text part)
  if(NOT text MATCHES "${part}")
    message(FATAL_ERROR "no \"${part}\" in:\n${text}")
  endif()
endfunction()

function(expect_none text part)
  if(text MATCHES "${part}")
    message(FATAL_ERROR "\"${part}\" in:\n${text}")
  endif()
endfunction()

set(configure ${CMAKE_COMMAND} -S ${WORK}/app -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/kvjit
    -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}") # a sanitizer wants all of a program
set(build ${CMAKE_COMMAND} --build ${WORK}/build)
set(app ${WORK}/build/app)

run(WORKS out ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/kvjit)
run(WORKS out ${configure})
run(WORKS out ${build})
expect("${out}" "app-kernels.kvjb")
run(WORKS out ${app} op=Merge,head_dim=8 op=Merge,head_dim=16)
expect("${out}" "compiles 0 bundle_hits 2")
run(FAILS out ${app} op=Merge,head_dim=24)
expect("${out}" "op=Merge,head_dim=24")

# Nothing has changed: nothing is made.
run(WORKS out ${build})
expect_none("${out}" "Making")

# Another spec: it alone is compiled, and the program has it.
file(APPEND ${WORK}/app/specs.txt "op=Merge head_dim=24\n")
run(WORKS out ${build})
expect("${out}" "Making app-kernels.kvjb")
run(WORKS out ${app} op=Merge,head_dim=8 op=Merge,head_dim=24)
expect("${out}" "compiles 0 bundle_hits 2")

# What is wrong is said, when configuring as far as that can be.
run(FAILS out ${configure} -DAPP_TARGETS=x86-64-v9)
expect("${out}" "TARGETS has \"x86-64-v9\"; it takes host x86-64 .*sm_90a")
run(FAILS out ${configure} -DAPP_TARGETS=)
expect("${out}" "TARGETS is missing")
run(FAILS out ${configure} -DAPP_TARGETS=x86-64-v2 -DKVJIT_BUNDLE_JOBS=many)
expect("${out}" "KVJIT_BUNDLE_JOBS is \"many\"; it takes a number")
run(FAILS out ${configure} -DAPP_TARGETS=x86-64-v3+avxvnni+nosuch -DKVJIT_BUNDLE_JOBS=0)
expect("${out}" "\"nosuch\" is none of the features cmov .* avxvnni ")
run(FAILS out ${configure} -DAPP_TARGETS=x86-64-v3+)
expect("${out}" "TARGETS has \"x86-64-v3.\"; \"\" is none of the features")
run(FAILS out ${configure} -DAPP_TARGETS=x86-64-v2 -DAPP_SPECS=none.txt)
expect("${out}" "SPECS has .*/app/none.txt, which is no file")
run(FAILS out ${configure} -DAPP_SPECS=specs.txt "-DAPP_MORE=KEY,none.pem")
expect("${out}" "KEY has .*/app/none.pem, which is no file")
run(FAILS out ${configure} -DAPP_MORE=KEY)
expect("${out}" "KEY has no value")
run(FAILS out ${configure} "-DAPP_MORE=MAX_COMBINATIONS,0")
expect("${out}" "MAX_COMBINATIONS is 0; it takes a number from 1 on")
run(WORKS out ${configure} -DAPP_MORE= -DAPP_TARGETS=cuda-emulated+wgmma)
run(WORKS out ${configure} -DAPP_TARGETS=x86-64-v3+amx-emulated)
run(WORKS out ${configure} -DAPP_MORE= -DAPP_TARGETS=x86-64-v3+avxvnni -DAPP_SPECS=${WORK}/build/made.txt)
run(WORKS out ${build})
expect("${out}" "Making app-kernels.kvjb")
run(WORKS out ${configure} -DAPP_TARGETS=x86-64-v2 -DAPP_SPECS=specs.txt)
file(APPEND ${WORK}/app/specs.txt "op=Merge head_dim={8,100}\n")
run(FAILS out ${build})
expect("${out}" "line 3: no spec has head_dim=100")

# make_bundle(FOLDER JOBS SPECS VARIABLE=VALUE...): a machine where all lies in FOLDER, kvjit, too.
function(make_bundle folder jobs specs)
  file(COPY ${APP}/ DESTINATION "${folder}/src")
  file(RENAME "${folder}/src/project.cmake" "${folder}/src/CMakeLists.txt")
  file(WRITE "${folder}/src/specs.txt" "${specs}")
  set(there ${CMAKE_COMMAND} -E env ${ARGN} ${CMAKE_COMMAND})
  run(WORKS out ${there} --install ${BUILD} --prefix "${folder}/kvjit")
  run(WORKS out ${there} -S "${folder}/src" -B "${folder}/build" -G ${GENERATOR} "-DCMAKE_PREFIX_PATH=${folder}/kvjit"
      -DCMAKE_CXX_COMPILER=${CXX} -DKVJIT_BUNDLE_JOBS=${jobs})
  run(WORKS out ${there} --build "${folder}/build" --target app-kernels)
  expect("${out}" "10 programs; 10 compiled")
endfunction()

# Two machines make the same bytes: another folder, home, time zone, locale, number of threads, and order of specs.
make_bundle(${WORK}/one 1 "op=KeyValueCache head_dim={64,128} quant_bit={0,8}\nop=Merge head_dim={8,16}\n"
            HOME=${WORK}/one TZ=UTC LC_ALL=C)
make_bundle("${WORK}/the other" 3 "op=Merge head_dim={16,8}\nop=KeyValueCache quant_bit={8,0} head_dim={128,64}\n"
            "HOME=${WORK}/the other" TZ=Pacific/Chatham LC_ALL=C.UTF-8 LANGUAGE=tr LANG=tr_TR.UTF-8)
run(WORKS out ${CMAKE_COMMAND} -E compare_files ${WORK}/one/build/app-kernels.kvjb
    "${WORK}/the other/build/app-kernels.kvjb")
file(REMOVE_RECURSE ${WORK})
