# The library calls no function of C that macOS lacks, but in *_linux.cpp:
#   cmake -DNM=<nm> -DLIBRARY=<libpleat.a of Linux> -P calls.cmake
# macos.txt beside this lists what macOS has of what is called.
cmake_minimum_required(VERSION 3.24)

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/macos.txt lines REGEX "^[^#]")
list(JOIN lines " " known)
separate_arguments(known)

execute_process(COMMAND ${NM} -u -A ${LIBRARY} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${text}")
set(found "")
set(called "")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "([^:/]+)\\.o: +[Uw] ([^@ ]+)")
    continue()
  endif()
  set(object ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  # Those of C++ and of compilers, and of libraries that are there on macOS, too.
  if(object MATCHES "_linux\\.cpp$" OR
     name MATCHES "^(_Z|__cxa_|_Unwind_|__gxx_|__cpu_|__asan_|__ubsan_|__tsan_|__gcov_|png_|jpeg_|inflate|deflate|crc32|dnnl_|omp_|GOMP_)")
    continue()
  endif()
  # As glibc calls them, with checks or for a newer standard.
  string(REGEX REPLACE "^__isoc[0-9]+_|^__(.*)_chk$" "\\1" name "${name}")
  list(APPEND called ${name})
  if(NOT name IN_LIST known)
    list(APPEND found "${object}: ${name}")
  endif()
endforeach()
list(REMOVE_DUPLICATES called)
list(LENGTH called count)
if(count LESS 50)
  message(FATAL_ERROR "${LIBRARY}: only ${count} functions were seen")
endif()
if(found)
  list(REMOVE_DUPLICATES found)
  list(JOIN found "\n  " found)
  message(FATAL_ERROR "not known to be on macOS: put it into a file *_linux.cpp, with another form in *_macos.cpp, or, \
where macOS has it, into macos.txt:\n  ${found}")
endif()
