# Refuses processors on which Pleat would not be right, before anything is built. tests/processors.cmake runs it alone.
if(CMAKE_SIZEOF_VOID_P LESS 8)
  message(FATAL_ERROR "Pleat needs a 64-bit system, got pointers of ${CMAKE_SIZEOF_VOID_P} bytes: its sizes and offsets "
    "are of 64 bits, which such pointers cannot reach; compile for the 64-bit variant of the processor")
endif()
if(CMAKE_CXX_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "Pleat needs a little-endian processor, got ${CMAKE_SYSTEM_PROCESSOR}, which is big-endian: the "
    "readers and writers of .npy, safetensors and ONNX files copy elements as they lie in memory, and files have their "
    "least significant byte first; compile for a little-endian one (x86-64, AArch64, ppc64le, riscv64)")
endif()
