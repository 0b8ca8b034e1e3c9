# Checks that README.md shows its example as it is compiled:
#   cmake -DROOT=<source tree> -P readme_listing.cmake
cmake_minimum_required(VERSION 3.24)

file(READ ${ROOT}/README.md readme)
file(READ ${ROOT}/examples/regression.cpp program)
string(FIND "${readme}" "<!-- listing: examples/regression.cpp -->\n```cpp\n${program}```\n" place)
if(place EQUAL -1)
  message(FATAL_ERROR "README.md: the listing differs from examples/regression.cpp; copy the file into it")
endif()
