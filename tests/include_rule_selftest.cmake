# Shows that include_rule.cmake finds what it must: the tree include_rule/fixture breaks every rule, and
# include_rule/expected.txt lists the breaches, no more and no fewer.
cmake_minimum_required(VERSION 3.24)

execute_process(
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_CURRENT_LIST_DIR}/include_rule/fixture
    -P ${CMAKE_CURRENT_LIST_DIR}/include_rule.cmake
  RESULT_VARIABLE result ERROR_VARIABLE printed)
if(result EQUAL 0)
  message(FATAL_ERROR "include_rule.cmake must fail on the fixture, but it passed")
endif()
# What follows the breaches is CMake's own report of the failure.
string(REGEX REPLACE "CMake Error at .*" "" printed "${printed}")
file(READ ${CMAKE_CURRENT_LIST_DIR}/include_rule/expected.txt expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "include_rule.cmake: must print\n${expected}\nbut printed\n${printed}")
endif()
