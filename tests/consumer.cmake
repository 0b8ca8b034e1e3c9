# Programs that use Pleat from outside of its tree.
if(PLEAT_SANITIZE)
  set(sanitize -fsanitize=${PLEAT_SANITIZE})
endif()
get_target_property(position_independent pleat POSITION_INDEPENDENT_CODE)
# scripts/test_consumers.sh builds them whole.
set(ways find_package pkg_config add_subdirectory fetch_content)
if(CMAKE_CROSSCOMPILING)
  list(REMOVE_ITEM ways pkg_config)  # which knows libraries of this machine
endif()
if(WIN32)
  set(position_independent OFF)  # its plugins are loaded otherwise
endif()
foreach(way IN LISTS ways)
  add_test(NAME consumer_${way}
    COMMAND ${CMAKE_COMMAND} -DWAY=${way} -DPLUGIN=${position_independent} -DBUILD=${PROJECT_BINARY_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/consumer/${way}
      -DGENERATOR=${CMAKE_GENERATOR} "-DPREFIX_PATH=${CMAKE_PREFIX_PATH}" -DCXX=${CMAKE_CXX_COMPILER}
      -DTOOLCHAIN=${CMAKE_TOOLCHAIN_FILE} "-DEMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}" -DOBJECT=${CMAKE_CXX_OUTPUT_EXTENSION}
      "-DCXX_FLAGS=${CMAKE_CXX_FLAGS} ${sanitize}"
      -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/run.cmake)
  set_tests_properties(consumer_${way} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: ")
endforeach()
