# Which processors cmake/processors.cmake refuses, and what it says: cmake -DROOT=... -P processors.cmake
function(expect size order message)
  execute_process(COMMAND ${CMAKE_COMMAND} -DCMAKE_SIZEOF_VOID_P=${size} -DCMAKE_CXX_BYTE_ORDER=${order}
    -DCMAKE_SYSTEM_PROCESSOR=s390x -P ${ROOT}/cmake/processors.cmake RESULT_VARIABLE failed ERROR_VARIABLE said OUTPUT_QUIET)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  if(message STREQUAL "" AND failed)
    message(SEND_ERROR "pointers of ${size} bytes, ${order}: refused: ${said}")
  elseif(NOT message STREQUAL "" AND NOT (failed AND said MATCHES "${message}"))
    message(SEND_ERROR "pointers of ${size} bytes, ${order}: must be refused with \"${message}\", got \"${said}\"")
  endif()
endfunction()
expect(8 LITTLE_ENDIAN "")
expect(4 LITTLE_ENDIAN "needs a 64-bit system, got pointers of 4 bytes: its sizes")
expect(8 BIG_ENDIAN "needs a little-endian processor, got s390x, which is big-endian: the readers and writers")
