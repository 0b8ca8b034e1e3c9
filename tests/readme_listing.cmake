# Checks that documents show examples as they are compiled:
#   cmake -DROOT=<source tree> -P readme_listing.cmake
cmake_minimum_required(VERSION 3.24)

function(check_listing document example)
  file(READ ${ROOT}/${document} text)
  file(READ ${ROOT}/${example} program)
  string(FIND "${text}" "<!-- listing: ${example} -->\n```cpp\n${program}```\n" place)
  if(place EQUAL -1)
    message(SEND_ERROR "${document}: the listing differs from ${example}; copy the file into it")
  endif()
endfunction()

check_listing(README.md examples/regression.cpp)
check_listing(docs/tuning.md examples/tune_conv.cpp)
