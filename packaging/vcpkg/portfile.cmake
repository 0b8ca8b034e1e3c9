# As an overlay port of a checkout: vcpkg install pleat --overlay-ports=packaging/vcpkg. A port of a release would have
# vcpkg_from_github in place of the next line.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
if(VCPKG_TARGET_IS_MINGW)
  vcpkg_check_linkage(ONLY_STATIC_LIBRARY)  # Pleat is no DLL
endif()
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS
  -DPLEAT_NATIVE=OFF -DPLEAT_CPU_VARIANTS=OFF -DPLEAT_CUDA=OFF -DPLEAT_ONEDNN=OFF -DPLEAT_MPI=OFF
  -DPLEAT_BUILD_TESTS=OFF -DPLEAT_BUILD_EXAMPLES=OFF -DPLEAT_BUILD_BENCH=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/Pleat)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
