# Fails when a public function that computes has no test on the other device:
#   cmake -DROOT=<source tree> -P complete.cmake
#
# - A function that autograd/functions/*.h or nn/loss.h declares (or takes over by `using ops::name`) must be called by
#   a test in this folder.
# - A raw operation that ops/**/*.h declares must be called there, too, or by a differentiable function or an
#   optimiser, which then is what the test calls.
cmake_minimum_required(VERSION 3.24)

# The names of the functions that a header declares at the start of a line.
function(declared_functions out header)
  file(STRINGS ${header} lines REGEX "^[A-Za-z_].*[ &][a-z_0-9]+\\(|^using ops::[a-z_0-9]+;")
  set(names "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^using ops::([a-z_0-9]+);" OR
       line MATCHES "^(inline )?(const )?[A-Za-z_:<>]+[&*]? ([a-z_0-9]+)\\(")
      list(APPEND names ${CMAKE_MATCH_3}${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(TRANSFORM names REPLACE "inline $" "")
  list(REMOVE_DUPLICATES names)
  set(${out} ${names} PARENT_SCOPE)
endfunction()

function(is_private out header)
  file(STRINGS ${header} first LIMIT_COUNT 1)
  if(first MATCHES "^// Private header")
    set(${out} TRUE PARENT_SCOPE)
  else()
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

function(read_all out)
  set(text "")
  foreach(file IN LISTS ARGN)
    file(READ ${file} one)
    string(APPEND text "${one}")
  endforeach()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

file(GLOB tests ${ROOT}/tests/device/*_test.cpp)
read_all(tests ${tests})
file(GLOB_RECURSE users ${ROOT}/autograd/*.cpp ${ROOT}/nn/*.cpp ${ROOT}/nn/*.h)
read_all(users ${users})

set(missing "")
set(count 0)
file(GLOB headers ${ROOT}/autograd/functions/*.h ${ROOT}/nn/loss.h)
foreach(header IN LISTS headers)
  is_private(private ${header})
  if(private)
    continue()
  endif()
  declared_functions(names ${header})
  foreach(name IN LISTS names)
    math(EXPR count "${count} + 1")
    if(NOT tests MATCHES "[^a-zA-Z_0-9:.]${name}\\(")
      cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE where)
      list(APPEND missing "${where}: ${name}")
    endif()
  endforeach()
endforeach()

# `using ops::name` was looked for above.
file(GLOB users_headers ${ROOT}/autograd/functions/*.h)
read_all(users_headers ${users_headers})
string(APPEND users "${users_headers}")

file(GLOB_RECURSE headers ${ROOT}/ops/*.h)
# These describe and choose; what they choose is computed by the others.
list(FILTER headers EXCLUDE REGEX "/(problem|implementations?)\\.h$|/spatial/channel_layout\\.h$")
foreach(header IN LISTS headers)
  is_private(private ${header})
  if(private)
    continue()
  endif()
  file(READ ${header} text)
  if(NOT text MATCHES "namespace ops|namespace pleat::ops")
    continue()
  endif()
  declared_functions(names ${header})
  list(FILTER names EXCLUDE REGEX "_implementations$|^describe$")
  foreach(name IN LISTS names)
    math(EXPR count "${count} + 1")
    if(NOT "${tests}${users}" MATCHES "ops::${name}[^a-z_0-9]")
      cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE where)
      list(APPEND missing "${where}: ops::${name}")
    endif()
  endforeach()
endforeach()

if(missing)
  list(JOIN missing "\n  " missing)
  message(FATAL_ERROR "No test in tests/device/ computes these on the other device:\n  ${missing}")
endif()
# Were the headers written in another way, nothing would be found and nothing missing.
if(count LESS 200)
  message(FATAL_ERROR "only ${count} functions were found in the headers; at least 200 are there")
endif()
message(STATUS "${count} functions are tested on the other device")
