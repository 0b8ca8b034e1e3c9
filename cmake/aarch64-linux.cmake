# Toolchain for 64-bit Arm on Linux, from another machine. Where qemu-aarch64 is installed (Debian: qemu-user), tests run
# on it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
find_program(PLEAT_QEMU_AARCH64 qemu-aarch64)
if(PLEAT_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${PLEAT_QEMU_AARCH64} -L /usr/aarch64-linux-gnu)
endif()
