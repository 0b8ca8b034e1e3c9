# pleat_warnings(<target>): the warnings every target of Pleat is compiled with; errors when PLEAT_WERROR is on.
include_guard()

function(pleat_warnings target)
  set(flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
    -Woverloaded-virtual -Wimplicit-fallthrough -Wundef
    # Vectors may be longer than registers (core/base/simd.h); what takes or returns them is
    # inlined or local to a file.
    -Wno-psabi)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False alarms on AVX-512 intrinsics (GCC bug 105593) and on an empty std::optional.
    list(APPEND flags -Wno-maybe-uninitialized)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # False alarms on `"text" + std::string` (105651).
      list(APPEND flags -Wno-restrict)
      if(PLEAT_SANITIZE)
        # Instrumented, the same intrinsics raise the stronger warning too.
        list(APPEND flags -Wno-uninitialized)
      endif()
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Loops are said to have independent iterations (map_arrays.h); not all of them can be vectorised, nor need be.
    list(APPEND flags -Wno-pass-failed)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 17)
      # std::stable_sort of libstdc++ 12 calls a function that is deprecated; the other compilers look for our own calls.
      list(APPEND flags -Wno-deprecated-declarations)
    endif()
  endif()
  if(PLEAT_WERROR)
    list(APPEND flags -Werror)
  endif()
  # nvcc and its host compiler: pleat_cuda_options.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${flags}>)
endfunction()
