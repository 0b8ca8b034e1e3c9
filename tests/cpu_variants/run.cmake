# Builds and installs a small library with variants as cmake/cpu_variants.cmake has it, and checks which of them the dynamic
# loader opens, also on processors that have less:
#   cmake -DROOT=<source tree> -DINCLUDE=<folder with pleat> -DWORK=<scratch folder> -DGENERATOR=... -DCXX=... -P run.cmake
cmake_minimum_required(VERSION 3.24)

include(${CMAKE_CURRENT_LIST_DIR}/../run_command.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -G ${GENERATOR} -DROOT=${ROOT} -DINCLUDE=${INCLUDE}
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_INSTALL_PREFIX=${WORK}/prefix)
file(READ ${WORK}/build/levels levels)
if(NOT levels)
  message("skipped: no variants for this system or compiler")
  return()
endif()
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE glibc)
if(NOT glibc MATCHES "glibc ([0-9.]+)" OR CMAKE_MATCH_1 VERSION_LESS 2.33)
  message("skipped: variants need glibc 2.33, here is ${glibc}")
  return()
endif()
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_COMMAND} --install ${WORK}/build)

# What the processor has without some instructions.
function(expect_level level hidden)
  foreach(program build/say_level prefix/bin/say_level)
    run(${CMAKE_COMMAND} -E env GLIBC_TUNABLES=glibc.cpu.hwcaps=${hidden} ${WORK}/${program})
    if(NOT output MATCHES "^${level} ")
      message(FATAL_ERROR "${program} without '${hidden}': must load the library for ${level}, printed '${output}'")
    endif()
  endforeach()
endfunction()

run(${WORK}/build/say_level)
string(REGEX REPLACE ".* " "" best ${output})
if(best STREQUAL "x86-64-v2")
  set(best x86-64)  # which has no variant
endif()
expect_level(${best} "")
if(best STREQUAL "x86-64-v4")
  expect_level(x86-64-v3 -AVX512F)
endif()
expect_level(x86-64 -AVX512F,-AVX2)
