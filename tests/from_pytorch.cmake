# Checks that docs/from_pytorch.md names what there is:
#   cmake -DROOT=<source tree> -P from_pytorch.cmake
cmake_minimum_required(VERSION 3.24)

file(GLOB_RECURSE headers ${ROOT}/core/*.h ${ROOT}/autograd/*.h ${ROOT}/nn/*.h ${ROOT}/io/*.h ${ROOT}/data/*.h
  ${ROOT}/profile/*.h ${ROOT}/models/*.h ${ROOT}/onnx/*.h
  ${ROOT}/train/*.h)
set(declared "")
foreach(header IN LISTS headers)
  file(READ ${header} text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(APPEND declared "${text}")
endforeach()

file(STRINGS ${ROOT}/docs/from_pytorch.md rows REGEX "^\\|.*`")
set(names 0)
foreach(row IN LISTS rows)
  string(REGEX REPLACE "^\\|[^|]*\\|([^|]*)\\|.*" "\\1" ours "${row}")
  string(REGEX MATCHALL "`[A-Za-z0-9_]+`" quoted "${ours}")
  foreach(name IN LISTS quoted)
    string(REPLACE "`" "" name "${name}")
    math(EXPR names "${names} + 1")
    if(NOT declared MATCHES "[^A-Za-z0-9_]${name}[^A-Za-z0-9_]")
      message(SEND_ERROR "docs/from_pytorch.md: no public header declares ${name}")
    endif()
  endforeach()
endforeach()
if(names LESS 200)
  message(FATAL_ERROR "docs/from_pytorch.md: only ${names} names were found")
endif()
