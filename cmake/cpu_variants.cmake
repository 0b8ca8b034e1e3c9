# PLEAT_CPU_VARIANTS: beside the shared library for every x86-64 processor the same one for newer processors,
#   libpleat.so
#   glibc-hwcaps/x86-64-v3/libpleat.so   AVX2, FMA, F16C: Intel since Haswell, AMD since Zen
#   glibc-hwcaps/x86-64-v4/libpleat.so   AVX-512: Intel's servers since Skylake, AMD since Zen 4
# of which the dynamic loader of glibc (2.33 or newer; older ones take the first) opens the best that the processor can
# run. Sets PLEAT_CPU_LEVELS to these levels, or to nothing, and offers
#   pleat_level_flags(<out> <level>)           the compile flags of a level
#   pleat_place_variant(<target> <of> <level>) target is a level's variant of the library `of`, which has VERSION and
#                                              SOVERSION: name, folder, install
include_guard()
include(CMakeDependentOption)
include(GNUInstallDirs)

# Elsewhere no loader chooses. Flags with an architecture of their own say what the library is for.
set(pleat_variants_can_be OFF)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND
   CMAKE_SIZEOF_VOID_P EQUAL 8 AND CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$" AND
   NOT CMAKE_CXX_FLAGS MATCHES "-march=" AND NOT PLEAT_CUDA_DOUBLED)
  set(pleat_variants_can_be ON)
endif()
cmake_dependent_option(PLEAT_CPU_VARIANTS "Build variants of the shared library for newer x86-64 processors" ON
  "BUILD_SHARED_LIBS;NOT PLEAT_NATIVE;pleat_variants_can_be" OFF)
set(PLEAT_CPU_LEVELS "")
if(PLEAT_CPU_VARIANTS)
  set(PLEAT_CPU_LEVELS x86-64-v3 x86-64-v4)
elseif(pleat_variants_can_be AND NOT PLEAT_NATIVE)
  message(STATUS "Pleat uses no instructions beyond SSE2: PLEAT_NATIVE=ON tunes for this machine,\
 BUILD_SHARED_LIBS=ON adds variants for newer processors")
endif()

function(pleat_level_flags out level)
  set(flags -march=${level})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # As cmake/native_tuning.cmake has it: no g++ repeats loads for it.
    list(APPEND flags -mtune=icelake-server)
  endif()
  if(level STREQUAL "x86-64-v4")
    list(APPEND flags -mprefer-vector-width=512)
  endif()
  set(${out} ${flags} PARENT_SCOPE)
endfunction()

function(pleat_place_variant target of level)
  set(root ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  if(NOT root)
    set(root ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  # The loader looks for the same file name in all folders.
  get_target_property(version ${of} VERSION)
  get_target_property(soversion ${of} SOVERSION)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${of} VERSION ${version} SOVERSION ${soversion}
    LIBRARY_OUTPUT_DIRECTORY ${root}/glibc-hwcaps/${level})
  add_dependencies(${of} ${target})  # a program that links one may load the other
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/glibc-hwcaps/${level} NAMELINK_SKIP)
endfunction()
