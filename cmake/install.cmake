# `cmake --install` puts the library, its public headers and the package for find_package(Pleat) in place.
include_guard()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# A header that says so in its first five lines is private (tests/include_rule.cmake keeps public headers free of it).
file(GLOB_RECURSE pleat_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  core/*.h ops/*.h autograd/*.h nn/*.h io/*.h data/*.h profile/*.h plot/*.h models/*.h onnx/*.h train/*.h dist/*.h)
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

configure_package_config_file(cmake/PleatConfig.cmake.in ${PROJECT_BINARY_DIR}/PleatConfig.cmake
  INSTALL_DESTINATION ${pleat_package})
# Until 1.0 any minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PleatConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PleatConfig.cmake ${PROJECT_BINARY_DIR}/PleatConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/PleatCudaLibraries.cmake ${PROJECT_SOURCE_DIR}/cmake/PleatOneDnn.cmake
  DESTINATION ${pleat_package})
