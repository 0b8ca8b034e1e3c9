# Compiles through ccache where it is installed; PLEAT_CCACHE=OFF or a launcher of one's own turns it off.
include_guard()

option(PLEAT_CCACHE "Compile through ccache when it is installed" ON)
if(PLEAT_CCACHE)
  find_program(PLEAT_CCACHE_PROGRAM ccache)
  mark_as_advanced(PLEAT_CCACHE_PROGRAM)
  # What ccache needs for precompiled headers (its manual), and for builds beside each other to share what they compile
  # alike: the same paths from the folder of a build.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_NOHASHDIR=1 ${PLEAT_CCACHE_PROGRAM})
  foreach(language CXX CUDA)
    if(PLEAT_CCACHE_PROGRAM AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
    endif()
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()
