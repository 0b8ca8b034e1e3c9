# Toolchain for 64-bit Arm on Linux, from another machine. Where qemu-aarch64 is installed (Debian: qemu-user), tests run
# on it. The target's libraries are looked for in PLEAT_ARM_ROOT first, into which scripts/test_arm.sh puts them.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
cmake_path(SET PLEAT_ARM_ROOT NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../build/arm-root/root)
if(EXISTS ${PLEAT_ARM_ROOT})
  list(APPEND CMAKE_FIND_ROOT_PATH ${PLEAT_ARM_ROOT})
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
  set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${PLEAT_ARM_ROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE})  # jconfig.h
  # Also for libraries of libraries, when linked and when run.
  set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,--disable-new-dtags,-rpath-link,${PLEAT_ARM_ROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()
find_program(PLEAT_QEMU_AARCH64 qemu-aarch64)
if(PLEAT_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${PLEAT_QEMU_AARCH64} -L /usr/aarch64-linux-gnu)
endif()
