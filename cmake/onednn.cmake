# PLEAT_ONEDNN=ON|OFF: convolutions and batch norms by oneDNN as one more implementation on the CPU, where the library is
# installed. Sets PLEAT_WITH_ONEDNN, and offers the target pleat_onednn.
include_guard()

option(PLEAT_ONEDNN "Offer oneDNN's convolutions and batch norms when it is found" ON)
set(PLEAT_WITH_ONEDNN OFF)
if(PLEAT_ONEDNN AND NOT PLEAT_CUDA STREQUAL "DOUBLE")  # which repeats nothing of the CPU's
  find_package(dnnl 2.6 CONFIG QUIET)
  # How many threads another runtime uses, num_threads() could not say.
  if(dnnl_FOUND AND DNNL_CPU_RUNTIME STREQUAL "OMP")
    find_package(OpenMP COMPONENTS CXX QUIET)
    set(PLEAT_WITH_ONEDNN ${OpenMP_CXX_FOUND})
  endif()
endif()
if(PLEAT_WITH_ONEDNN)
  message(STATUS "Pleat with oneDNN ${dnnl_VERSION}")
endif()
