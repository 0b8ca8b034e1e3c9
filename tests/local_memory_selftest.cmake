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
  if(NOT result EQUAL status OR NOT printed MATCHES "^${expected}$")
    message(FATAL_ERROR "local_memory.py: must end with ${status} and print\n${expected}\nbut ended with ${result}\
 and printed\n${printed}")
  endif()
endfunction()

set(rolled "64 bytes of local memory, [0-9]+ registers: rolled\\(float\\*, int\\)\n")
set(wide "0 bytes of local memory, 1[3-9][0-9] registers: wide\\(float\\*\\)\n")
set(all "3 kernels, 2 with local memory or many registers")
check("" 1 "${rolled}${wide}${all}, 2 not excepted\n")
check("63 ^rolled  # too few bytes\n0/129 ^wide  # too few registers\n" 1 "${rolled}${wide}${all}, 2 not excepted\n")
check("64 ^rolled  # its index\n" 1 "${wide}${all}, 1 not excepted\n")
check("64 ^rolled  # its index\n0/200 ^wide  # its values\n8 other  # none\n" 0
  "no kernel needs the exception \"other\"\n${all}, 0 not excepted\n")
