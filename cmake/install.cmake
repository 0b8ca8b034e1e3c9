# `cmake --install` puts the library, its public headers and what find_package(Pleat) and pkg-config read in place.
include_guard()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# A header that says so in its first five lines is private (tests/include_rule.cmake keeps public headers free of it).
file(GLOB_RECURSE pleat_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  core/*.h ops/*.h autograd/*.h nn/*.h io/*.h data/*.h profile/*.h plot/*.h models/*.h onnx/*.h inference/*.h train/*.h dist/*.h)
file(GLOB pleat_umbrella CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} pleat.h)
foreach(header IN LISTS pleat_umbrella pleat_headers)
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} head LIMIT_COUNT 5)
  if(NOT head MATCHES "// Private header: not installed\\.")
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pleat/${folder})
  endif()
endforeach()

set(pleat_package ${CMAKE_INSTALL_LIBDIR}/cmake/Pleat)
install(TARGETS pleat EXPORT PleatTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT PleatTargets NAMESPACE pleat:: DESTINATION ${pleat_package})
# Of its own, so that who does not ask for the component `dist` needs no MPI.
install(TARGETS pleat_dist EXPORT PleatDistTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT PleatDistTargets NAMESPACE pleat:: DESTINATION ${pleat_package})

configure_package_config_file(cmake/PleatConfig.cmake.in ${PROJECT_BINARY_DIR}/PleatConfig.cmake
  INSTALL_DESTINATION ${pleat_package})
# Until 1.0 any minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PleatConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PleatConfig.cmake ${PROJECT_BINARY_DIR}/PleatConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/PleatCudaLibraries.cmake ${PROJECT_SOURCE_DIR}/cmake/PleatOneDnn.cmake
  DESTINATION ${pleat_package})

# For pkg-config. A program that links the shared library needs nothing else. A static one needs what it uses, not only with
# --static: there is no other library to choose.
set(pleat_pc_requires "")
set(pleat_pc_libs ${CMAKE_THREAD_LIBS_INIT})
if(NOT BUILD_SHARED_LIBS)
  set(pleat_pc_requires fmt libpng zlib)
  if(PLEAT_WITH_JPEG)
    list(APPEND pleat_pc_requires libjpeg)
  endif()
  # Those that pkg-config does not know everywhere.
  if(PLEAT_WITH_ONEDNN)
    list(APPEND pleat_pc_libs ${PLEAT_ONEDNN_LIBRARY})
    foreach(name IN LISTS OpenMP_CXX_LIB_NAMES)
      list(APPEND pleat_pc_libs ${OpenMP_${name}_LIBRARY})
    endforeach()
  endif()
  if(PLEAT_WITH_CUDNN)
    list(APPEND pleat_pc_libs ${PLEAT_CUDNN_LIBRARY})
  endif()
  if(PLEAT_WITH_CUDA)
    list(APPEND pleat_pc_libs ${PLEAT_CUBLAS_LIBRARY} ${CUDA_cudart_static_LIBRARY} -lrt -ldl)
  endif()
  if(NOT APPLE)
    list(APPEND pleat_pc_libs -Wl,--gc-sections)  # as the target says
  endif()
endif()
list(APPEND pleat_pc_libs ${PLEAT_SYSTEM_LINK_FLAGS})
list(JOIN pleat_pc_requires " " pleat_pc_requires)
list(JOIN pleat_pc_libs " " pleat_pc_libs)
list(JOIN PLEAT_SYSTEM_FLAGS " " pleat_pc_cflags)
file(RELATIVE_PATH pleat_pc_to_headers ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/pleat.pc.in ${PROJECT_BINARY_DIR}/pleat.pc @ONLY)
set(pleat_dist_pc_libs "")
if(NOT BUILD_SHARED_LIBS)
  if(PLEAT_WITH_NCCL)
    list(APPEND pleat_dist_pc_libs ${PLEAT_NCCL_LIBRARY})
  endif()
  if(PLEAT_WITH_MPI)
    list(APPEND pleat_dist_pc_libs ${MPI_CXX_LIBRARIES})
  endif()
endif()
list(JOIN pleat_dist_pc_libs " " pleat_dist_pc_libs)
configure_file(cmake/pleat-dist.pc.in ${PROJECT_BINARY_DIR}/pleat-dist.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pleat.pc ${PROJECT_BINARY_DIR}/pleat-dist.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
