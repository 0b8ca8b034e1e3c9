# Shows that local_memory.py finds what it must in what nvcc makes of local_memory/fixture.cu:
#   cmake -DNVCC=<nvcc> -DHOST=<C++ compiler> -DPYTHON=<python3> -DWORK=<folder to write to> -P local_memory_selftest.cmake
cmake_minimum_required(VERSION 3.24)

set(object ${WORK}/fixture.o)
file(MAKE_DIRECTORY ${WORK})
execute_process(
  COMMAND ${NVCC} -ccbin ${HOST} -gencode arch=compute_90,code=sm_90 -c ${CMAKE_CURRENT_LIST_DIR}/local_memory/fixture.cu
    -o ${object}
  COMMAND_ERROR_IS_FATAL ANY)

# Runs the script with `exceptions`; it must end with `status` and print `expected`.
function(check exceptions status expected)
  file(WRITE ${WORK}/exceptions.txt "${exceptions}")
  execute_process(
    COMMAND ${PYTHON} ${CMAKE_CURRENT_LIST_DIR}/local_memory.py ${object} ${WORK}/exceptions.txt
    RESULT_VARIABLE result OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
  if(result EQUAL 77)
    message("${printed}")  # "skipped: reason"
    return()
  endif()
  if(NOT result EQUAL status OR NOT printed STREQUAL expected)
    message(FATAL_ERROR "local_memory.py: must end with ${status} and print\n${expected}\nbut ended with ${result}\
 and printed\n${printed}")
  endif()
endfunction()

set(breach "64 bytes of local memory: rolled(float*, int)\n")
check("" 1 "${breach}2 kernels, 1 with local memory, 1 of them not excepted\n")
check("63 ^rolled  # too few bytes\n" 1 "${breach}2 kernels, 1 with local memory, 1 of them not excepted\n")
check("64 ^rolled  # its index\n" 0 "2 kernels, 1 with local memory, 0 of them not excepted\n")
check("64 ^rolled  # its index\n8 other  # none\n" 0
  "no kernel needs the exception \"8 other\"\n2 kernels, 1 with local memory, 0 of them not excepted\n")
