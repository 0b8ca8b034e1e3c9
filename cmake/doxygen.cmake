# The target `docs`, where doxygen is installed: the reference of the public headers, in docs/html of the build folder.
# A comment that doxygen does not understand is an error.
find_package(Doxygen 1.9.1 QUIET)
if(NOT DOXYGEN_FOUND)
  return()
endif()
set(PLEAT_DOXYGEN_OUTPUT ${PROJECT_BINARY_DIR}/docs)
file(MAKE_DIRECTORY ${PLEAT_DOXYGEN_OUTPUT})
# Those that pleat.h includes.
file(STRINGS ${PROJECT_SOURCE_DIR}/pleat.h includes REGEX "^#include \"pleat/")
list(TRANSFORM includes REPLACE "^#include \"pleat/(.*)\"$" "\"${PROJECT_SOURCE_DIR}/\\1\"")
list(JOIN includes " " PLEAT_DOXYGEN_INPUT)
configure_file(${CMAKE_CURRENT_LIST_DIR}/Doxyfile.in ${PLEAT_DOXYGEN_OUTPUT}/Doxyfile @ONLY)
add_custom_target(docs
  COMMAND Doxygen::doxygen ${PLEAT_DOXYGEN_OUTPUT}/Doxyfile
  COMMENT "The reference: ${PLEAT_DOXYGEN_OUTPUT}/html/index.html" VERBATIM)
