# What a package has beside the library, and how `cpack` packs a build (scripts/package.sh makes the one for everybody).
include_guard()
include(GNUInstallDirs)

# As source; their CMakeLists.txt builds them with find_package(Pleat), too.
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/pleat)
install(FILES LICENSE CHANGELOG.md cmake/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR TGZ)
find_program(PLEAT_DPKG dpkg)
mark_as_advanced(PLEAT_DPKG)
if(PLEAT_DPKG)
  list(PREPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_VENDOR Pleat)
# To publish a package, give an address that answers.
set(CPACK_PACKAGE_CONTACT "The Pleat maintainers <maintainers@pleat.invalid>" CACHE STRING "Who answers for packages")
set(CPACK_PACKAGE_DESCRIPTION "\
Tensors, an autograd tape, modules, optimisers and data loading in C++20.
Convolutions have several named implementations, which pleat-bench times.
Contains the library, its headers, what CMake and pkg-config read,
pleat-bench, and examples as source.")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
# What PleatConfig.cmake and pleat.pc ask for.
set(CPACK_DEBIAN_PACKAGE_DEPENDS libfmt-dev)
if(NOT BUILD_SHARED_LIBS)
  string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libpng-dev, zlib1g-dev")
  if(PLEAT_WITH_JPEG)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libjpeg-dev")
  endif()
  if(PLEAT_WITH_ONEDNN)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libdnnl-dev")
  endif()
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libcli11-dev)  # for the examples
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, pkg-config")
# What debhelper adds to the source package's: the libraries' names once (their variants have the same), the cache of
# ld.so, the history of the package.
if(PLEAT_DPKG)
  set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
  set(history ${PROJECT_BINARY_DIR}/packaging/changelog.Debian)
  configure_file(packaging/debian/changelog ${history} COPYONLY)
  execute_process(COMMAND gzip -9nf ${history} COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${history}.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
  if(BUILD_SHARED_LIBS)
    set(control ${PROJECT_BINARY_DIR}/control)
    get_target_property(abi pleat SOVERSION)
    file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
    foreach(library IN ITEMS libpleat libpleat_dist)
      list(APPEND shlibs "${library} ${abi} pleat (>= ${PROJECT_VERSION})")
    endforeach()
    list(JOIN shlibs "\n" shlibs)
    file(WRITE ${control}/shlibs "${shlibs}\n")
    set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${control}/triggers ${control}/shlibs)
  endif()
endif()
include(CPack)
