# Compiles calls.cpp without and with its lines marked "// refused":
#   cmake -DCXX=<compiler> -DINCLUDE=<folder of pleat/> -DWORK=<folder to write to> -P check.cmake
# Fails unless the first compiles and, in the second, all of these lines and no others are errors. For g++ and clang++.
cmake_minimum_required(VERSION 3.24)

set(source ${CMAKE_CURRENT_LIST_DIR}/calls.cpp)
file(READ ${source} text)
set(mark "[^\n]*; *// refused\n")

function(compile file)
  execute_process(COMMAND ${CXX} -std=c++20 -I${INCLUDE} -fsyntax-only -w ${ARGN} ${file}
    RESULT_VARIABLE result ERROR_VARIABLE errors OUTPUT_QUIET)
  set(result ${result} PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

string(REGEX REPLACE "${mark}" "\n" accepted "${text}")
file(WRITE ${WORK}/accepted_calls.cpp "${accepted}")
compile(${WORK}/accepted_calls.cpp)
if(result)
  message(FATAL_ERROR "the calls that are not marked \"// refused\" must compile:\n${errors}")
endif()

if(CXX MATCHES "clang")
  set(all_errors -ferror-limit=0)
else()
  set(all_errors -fmax-errors=0)
endif()
compile(${source} ${all_errors})
# A static_assert of the library names the call as the place that needs what is wrong.
set(place "calls\\.cpp:([0-9]+):[0-9]+: *((fatal )?error|required from here|note: in instantiation)")
string(REGEX MATCHALL "${place}" places "${errors}")
string(REGEX REPLACE "${place}" "\\1" wrong_lines "${places}")

# Lines as a list: its separators and brackets, which join elements, are taken out of the text first.
string(REGEX REPLACE "[][;]" " " text "${text}")
string(REPLACE "\n" ";" lines "${text}")
set(number 0)
set(refused 0)
set(breaches "")
foreach(line IN LISTS lines)
  math(EXPR number "${number} + 1")
  if(line MATCHES "// refused$")
    math(EXPR refused "${refused} + 1")
    if(NOT number IN_LIST wrong_lines)
      string(APPEND breaches "calls.cpp:${number}: must not compile, but does: ${line}\n")
    endif()
  elseif(number IN_LIST wrong_lines)
    string(APPEND breaches "calls.cpp:${number}: must compile beside the refused calls, but does not: ${line}\n")
  endif()
endforeach()
if(breaches)
  message(FATAL_ERROR "${breaches}")
endif()
if(refused LESS 100)
  message(FATAL_ERROR "only ${refused} refused calls were found in ${source}")
endif()
message(STATUS "${refused} calls are refused, each by an error of its own")
