# PLEAT_ONEDNN=ON|OFF: convolutions and batch norms by oneDNN as one more implementation on the CPU, where the library is
# installed. Sets PLEAT_WITH_ONEDNN, and offers the target pleat_onednn::dnnl.
include_guard()
include(PleatOneDnn)

option(PLEAT_ONEDNN "Offer oneDNN's convolutions and batch norms when it is found" ON)
set(PLEAT_WITH_ONEDNN OFF)
if(PLEAT_ONEDNN AND NOT PLEAT_CUDA_DOUBLED)  # which repeats nothing of the CPU's
  pleat_find_onednn()
  if(TARGET pleat_onednn::dnnl)
    set(PLEAT_WITH_ONEDNN ON)
    message(STATUS "Pleat with oneDNN ${PLEAT_ONEDNN_VERSION}")
  endif()
endif()
