# cmake -DOBJDUMP=... -DLIBRARY=<libpleat.a or .so> -P objects.cmake
# Whatever a program's static objects do in their constructors and destructors must find the library whole, so it has
# no constructor that runs before main and no destructor after it or at the end of a thread (core/base/thread_object.h
# says what to write), except for those named here.
cmake_minimum_required(VERSION 3.24)

if(NOT LIBRARY MATCHES "\\.a$")
  message("skipped: needs the static library")
  return()
endif()
# The end of the pool, after which loops run in their caller alone; who registers for others; who includes <iostream>,
# as CUB does; and who sees that oneDNN's objects are about to go.
set(allowed parallel.cpp process_linux.cpp compare.cpp index_kernels.cu ordered_lines.cu calls_onednn.cpp)

execute_process(COMMAND ${OBJDUMP} -h -t ${LIBRARY} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "," text "${text}")
string(REGEX MATCHALL "[^\n]+" lines "${text}")
set(found "")
set(objects 0)
foreach(line IN LISTS lines)
  if(line MATCHES "^(.*\\()?([^ (]+)\\.o\\)?:[ \t]")  # GNU's objdump, or LLVM's, which names the library, too
    set(object ${CMAKE_MATCH_2})
    math(EXPR objects "${objects} + 1")
    set(registers FALSE)
  elseif(object IN_LIST allowed)
    continue()
  elseif(line MATCHES "^ +[0-9]+ \\.nv_fatbin ")
    set(registers TRUE)  # nvcc has one function register the kernels of an object
  elseif(line MATCHES "^ +[0-9]+ \\.(init_array|ctors)[^ ]* +([0-9a-f]+)")
    if(NOT (registers AND CMAKE_MATCH_2 STREQUAL "00000008"))
      list(APPEND found "${object}: a constructor before main")
    endif()
  elseif(line MATCHES "\\*UND\\*.* (__cxa_atexit|__cxa_thread_atexit)$")
    list(APPEND found "${object}: ${CMAKE_MATCH_1}")
  endif()
endforeach()
list(REMOVE_DUPLICATES found)
if(objects LESS 100)
  message(FATAL_ERROR "${LIBRARY}: only ${objects} objects were seen")
endif()
if(found)
  list(JOIN found "\n  " found)
  message(FATAL_ERROR "objects with destructors, see core/base/thread_object.h:\n  ${found}")
endif()
