# Installs the build, then configures, builds and runs the consumer beside this file, and the first program of
# docs/tutorial.md, against what was installed:
#   cmake -DBUILD=<Pleat's build folder> -DWORK=<scratch folder> -DGENERATOR=... -DCXX=... -DCXX_FLAGS=... \
#     -DPREFIX_PATH=<where else Pleat's build looked for packages> -P run.cmake
cmake_minimum_required(VERSION 3.24)

include(${CMAKE_CURRENT_LIST_DIR}/../run_command.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
# An installed package can be moved: nothing in it may point back.
file(RENAME ${WORK}/first ${WORK}/prefix)

file(GLOB_RECURSE installed ${WORK}/prefix/*.h ${WORK}/prefix/*.cmake)
foreach(file IN LISTS installed)
  file(READ ${file} text)
  if(text MATCHES "// Private header: not installed\\.")
    message(FATAL_ERROR "${file}: a private header was installed")
  endif()
  string(FIND "${text}" "${BUILD}" position)
  if(NOT position EQUAL -1)
    message(FATAL_ERROR "${file}: names the build folder")
  endif()
endforeach()

set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX})
run(${configure} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
  "-DCMAKE_PREFIX_PATH=${WORK}/prefix;${PREFIX_PATH}")
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
if(NOT output STREQUAL "[2., 4., 6.]\n")
  message(FATAL_ERROR "consumer: must print the gradient [2., 4., 6.], printed\n${output}")
endif()

run(${configure} -S ${CMAKE_CURRENT_LIST_DIR}/../../examples/tutorial -B ${WORK}/tutorial
  "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix;${PREFIX_PATH}")
run(${CMAKE_COMMAND} --build ${WORK}/tutorial --target tensors)
run(${WORK}/tutorial/tensors)
if(NOT output MATCHES "loss 9, gradient")
  message(FATAL_ERROR "tutorial: tensors must print a gradient, printed\n${output}")
endif()
