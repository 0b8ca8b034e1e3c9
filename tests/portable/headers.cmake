# Public headers are C++20 without extensions, and stand macros of <windows.h>:
#   cmake "-DCXX=<compiler>;<compiler>..." -DINCLUDE=<folder of pleat/> -P headers.cmake
cmake_minimum_required(VERSION 3.24)

foreach(compiler IN LISTS CXX)
  execute_process(COMMAND ${compiler} -std=c++20 -fsyntax-only -Wpedantic -pedantic-errors -I${INCLUDE}
      ${CMAKE_CURRENT_LIST_DIR}/headers.cpp
    RESULT_VARIABLE result ERROR_VARIABLE errors)
  if(result)
    message(SEND_ERROR "${compiler} refuses public headers:\n${errors}")
  endif()
endforeach()
