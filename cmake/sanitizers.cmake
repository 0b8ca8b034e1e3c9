# PLEAT_SANITIZE=address|undefined|address,undefined|thread instruments everything that is built after this file is
# included.
include_guard()

set(PLEAT_SANITIZE "" CACHE STRING "Sanitizer: address, undefined, both with a comma, or thread; empty for none")
set_property(CACHE PLEAT_SANITIZE PROPERTY STRINGS "" address undefined address,undefined thread)

if(PLEAT_SANITIZE)
  if(NOT PLEAT_SANITIZE MATCHES "^(address|undefined|address,undefined|thread)$")
    message(FATAL_ERROR
      "PLEAT_SANITIZE: must be address, undefined, address,undefined or thread, got '${PLEAT_SANITIZE}'")
  endif()
  # Files of CUDA: their host code only.
  # One flag for each: nvcc would cut "address,undefined" in two.
  string(REPLACE "," ";-fsanitize=" sanitize "-fsanitize=${PLEAT_SANITIZE}")
  set(flags ${sanitize} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PLEAT_SANITIZE})
  if(PLEAT_SANITIZE MATCHES "undefined")
    # `undefined` leaves out a number that its type cannot hold. Without the second flag a finding is only printed, and
    # the test passes.
    list(APPEND flags -fsanitize=float-cast-overflow -fno-sanitize-recover=all)
  endif()
  list(JOIN flags "," host_flags)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${flags}>" "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_flags}>")
endif()

# For the targets in tests/fuzz: what is built counts the branches that an input takes.
option(PLEAT_LIBFUZZER "Build the fuzz targets with libFuzzer (clang only)" OFF)
if(PLEAT_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PLEAT_LIBFUZZER needs clang, got ${CMAKE_CXX_COMPILER_ID}; CXX=clang++ chooses it. Without it the \
targets are built with a loop of Pleat's own.")
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()
