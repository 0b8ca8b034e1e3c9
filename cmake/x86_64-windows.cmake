# Toolchain for 64-bit Windows, from another system, by mingw-w64: programs need nothing but Windows. CMAKE_PREFIX_PATH
# names what `scripts/bundle_deps.sh --for windows` collected. Where wine is installed (Debian: wine64), tests run on it.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)  # the one with std::thread
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
# Libraries of this machine are for another system.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_PREFIX_PATH} /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -static)
find_program(PLEAT_WINE wine64 PATHS /usr/lib/wine)
if(PLEAT_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_COMMAND} -E env WINEDEBUG=-all ${PLEAT_WINE})
endif()
