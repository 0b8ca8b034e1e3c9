# pleat_native_tuning(<out-var>): the compile flags that tune for the building machine, as a list; empty where the
# compiler knows none, and when cross-compiling.
#
# `-march=native` alone, but for one case: g++ before 14 on AMD since Zen 2 (it says -mtune=znver2, 3 or 4). Its cost
# tables make it repeat a load in every fused multiply-add that uses the value, so Eigen's inner loop does 16 vector
# loads for 12 multiply-adds where 7 loads do, and the matrix product loses a fifth with AVX-512 and a third with AVX2.
# Tuned for Ice Lake it is as fast as any flags make it; that tuning would halve the vectors of auto-vectorised loops,
# which the last flag undoes. Only scheduling changes: the instructions stay those of the CPU.
# Numbers, and how to repeat them: docs/measurements.md.
include_guard()
include(CheckCXXCompilerFlag)

function(pleat_native_tuning out)
  set(${out} "" PARENT_SCOPE)
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()

  check_cxx_compiler_flag(-march=native PLEAT_COMPILER_KNOWS_MARCH_NATIVE)
  if(NOT PLEAT_COMPILER_KNOWS_MARCH_NATIVE)
    check_cxx_compiler_flag(-mcpu=native PLEAT_COMPILER_KNOWS_MCPU_NATIVE)
    if(PLEAT_COMPILER_KNOWS_MCPU_NATIVE)
      set(${out} -mcpu=native PARENT_SCOPE)
    endif()
    return()
  endif()
  set(flags -march=native)

  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -Q --help=target
      OUTPUT_VARIABLE target ERROR_QUIET)
    if(target MATCHES "-mtune=[ \t]+znver[234]")
      list(APPEND flags -mtune=icelake-server)
      if(target MATCHES "-mavx512f[ \t]+\\[enabled\\]")
        list(APPEND flags -mprefer-vector-width=512)
      endif()
    endif()
  endif()
  set(${out} ${flags} PARENT_SCOPE)
endfunction()
