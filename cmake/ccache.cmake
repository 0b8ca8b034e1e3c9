# Compiles through ccache where it is installed; PLEAT_CCACHE=OFF or a launcher of one's own turns it off.
include_guard()

option(PLEAT_CCACHE "Compile through ccache when it is installed" ON)
if(PLEAT_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(PLEAT_CCACHE_PROGRAM ccache)
  mark_as_advanced(PLEAT_CCACHE_PROGRAM)
  if(PLEAT_CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${PLEAT_CCACHE_PROGRAM})
  endif()
endif()
