# oneDNN as the target pleat_onednn::dnnl, for the build and for find_package(Pleat). Its own package is not used: some
# distributions' ends the configuration where OpenCL, which Pleat has no use for, is not installed.
include_guard()

# Defines pleat_onednn::dnnl when oneDNN 2.6 or newer is found whose threads are OpenMP's: how many threads another
# runtime uses, num_threads() could not say. Sets PLEAT_ONEDNN_VERSION.
function(pleat_find_onednn)
  find_path(PLEAT_ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl_version.h)
  find_library(PLEAT_ONEDNN_LIBRARY dnnl)
  mark_as_advanced(PLEAT_ONEDNN_INCLUDE_DIR PLEAT_ONEDNN_LIBRARY)
  if(TARGET pleat_onednn::dnnl OR NOT PLEAT_ONEDNN_INCLUDE_DIR OR NOT PLEAT_ONEDNN_LIBRARY)
    return()
  endif()
  set(headers ${PLEAT_ONEDNN_INCLUDE_DIR}/oneapi/dnnl)
  file(STRINGS ${headers}/dnnl_version.h lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9]+" "." version ".${lines}")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${version}")
  file(STRINGS ${headers}/dnnl_config.h runtime REGEX "define DNNL_CPU_RUNTIME DNNL_RUNTIME_OMP")
  find_package(OpenMP COMPONENTS CXX QUIET)
  if(version VERSION_LESS 2.6 OR NOT runtime OR NOT OpenMP_CXX_FOUND)
    return()
  endif()
  add_library(pleat_onednn::dnnl UNKNOWN IMPORTED)
  # Of OpenMP the library alone: no file of Pleat's is compiled for it.
  set_target_properties(pleat_onednn::dnnl PROPERTIES IMPORTED_LOCATION ${PLEAT_ONEDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${PLEAT_ONEDNN_INCLUDE_DIR} INTERFACE_LINK_LIBRARIES $<LINK_ONLY:OpenMP::OpenMP_CXX>)
  set(PLEAT_ONEDNN_VERSION ${version} PARENT_SCOPE)
endfunction()
