# Checks what CTest is told of a skipped test: cmake -DPROGRAM=<pleat_tests> -P skip_selftest.cmake
cmake_minimum_required(VERSION 3.24)

function(expect test code)
  execute_process(COMMAND ${PROGRAM} ${test} RESULT_VARIABLE result OUTPUT_VARIABLE output)
  if(NOT result EQUAL code OR NOT output MATCHES "skipped: to show")
    message(FATAL_ERROR "'${test}': must exit with ${code}, exited with ${result}\n${output}")
  endif()
endfunction()

expect("skip_selftest skipped" 77)
expect("skip_selftest failed" 1)
