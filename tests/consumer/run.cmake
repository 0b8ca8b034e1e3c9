# Uses Pleat from outside of its tree, in one of the ways of README.md ("Use it in a project"):
#   cmake -DWAY=find_package|pkg_config -DBUILD=<Pleat's build folder> ... -P run.cmake
#     Installs the build, moves what was installed, and builds and runs the consumer beside this file against it; with
#     find_package also the tutorial's first program, and configures all examples, as they were installed.
#   cmake -DWAY=add_subdirectory|fetch_content [-DSHARED=ON|OFF] ... -P run.cmake
#     Configures the consumer with Pleat's sources in it and compiles its own file.
# With -DPLUGIN=ON find_package also links a shared library that a program loads, with Pleat in it. With -DWHOLE=ON the
# examples, or the library and the consumer, are built and run, too, which takes minutes.
# All: -DWORK=<scratch folder> -DGENERATOR=... -DCXX=... -DCXX_FLAGS=...
#   -DPREFIX_PATH=<where else Pleat's build looked for packages>; for another system [-DTOOLCHAIN=<file>]
#   [-DEMULATOR=<what runs its programs>] [-DOBJECT=<ending of its object files>]
cmake_minimum_required(VERSION 3.24)

include(${CMAKE_CURRENT_LIST_DIR}/../run_command.cmake)

set(here ${CMAKE_CURRENT_LIST_DIR})
file(REMOVE_RECURSE ${WORK})

# configure(<source> <build> <option>...): what is compiled here need not be fast.
function(configure source build)
  run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${source} -B ${build} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_TOOLCHAIN_FILE=${TOOLCHAIN}
    "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix;${PREFIX_PATH}" ${ARGN})
endfunction()

# expect(<text> <program> <argument>...): the program prints it.
function(expect text program)
  if(EXISTS ${program}.exe)
    set(program ${program}.exe)
  endif()
  run(${EMULATOR} ${program} ${ARGN})
  string(FIND "${output}" "${text}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "${program}: must print '${text}', printed\n${output}")
  endif()
endfunction()

function(install_and_move)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
  # An installed package can be moved: nothing in it may point back.
  file(RENAME ${WORK}/first ${WORK}/prefix)
  file(GLOB_RECURSE installed ${WORK}/prefix/*.h ${WORK}/prefix/*.cmake ${WORK}/prefix/*.pc)
  foreach(file IN LISTS installed)
    file(READ ${file} text)
    if(text MATCHES "// Private header: not installed\\.")
      message(FATAL_ERROR "${file}: a private header was installed")
    endif()
    foreach(place ${BUILD} ${WORK})
      string(FIND "${text}" "${place}" position)
      if(NOT position EQUAL -1)
        message(FATAL_ERROR "${file}: names ${place}")
      endif()
    endforeach()
  endforeach()
endfunction()

function(use_find_package)
  install_and_move()
  configure(${here} ${WORK}/build -DWAY=find_package -DPLUGIN=${PLUGIN})
  run(${CMAKE_COMMAND} --build ${WORK}/build)
  expect("[2., 4., 6.]" ${WORK}/build/consumer)
  expect("[1., 2.]" ${WORK}/build/consumer_dist)
  if(PLUGIN)
    expect("[2., 4., 6.] 1.8e+07" ${WORK}/build/plugin_host ${WORK}/build/plugin.so)
  endif()
  set(examples ${WORK}/prefix/share/pleat/examples)
  configure(${examples} ${WORK}/examples)
  if(WHOLE)
    run(${CMAKE_COMMAND} --build ${WORK}/examples)
    expect("step 1000  loss " ${WORK}/examples/regression)
  endif()
  configure(${examples}/tutorial ${WORK}/tutorial)
  run(${CMAKE_COMMAND} --build ${WORK}/tutorial --target tensors)
  expect("loss 9, gradient" ${WORK}/tutorial/tensors)
endfunction()

# Builds <name>.cpp with what pkg-config says of a module.
function(build_by_pkg_config name module)
  run(${pkg_config} --cflags --libs ${module})
  separate_arguments(flags UNIX_COMMAND "${CXX_FLAGS} ${output}")
  run(${CXX} -std=c++20 ${here}/${name}.cpp -o ${WORK}/${name} ${flags})
endfunction()

function(use_pkg_config)
  find_program(pkg_config NAMES pkg-config pkgconf)
  if(NOT pkg_config)
    message("skipped: pkg-config is not installed")
    return()
  endif()
  install_and_move()
  file(GLOB_RECURSE file ${WORK}/prefix/pleat.pc)
  get_filename_component(folder ${file} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${folder}:$ENV{PKG_CONFIG_PATH})
  run(${pkg_config} --print-requires pleat)
  string(REGEX MATCHALL "[^\n]+" required "${output}")
  foreach(library IN LISTS required)
    execute_process(COMMAND ${pkg_config} --exists ${library} RESULT_VARIABLE unknown)
    if(unknown)
      message("skipped: pkg-config does not know ${library}, which a static Pleat needs")
      return()
    endif()
  endforeach()
  get_filename_component(libraries ${folder} DIRECTORY)
  set(ENV{LD_LIBRARY_PATH} ${libraries}:$ENV{LD_LIBRARY_PATH})
  build_by_pkg_config(main pleat)
  expect("[2., 4., 6.]" ${WORK}/main)
  build_by_pkg_config(dist pleat-dist)
  expect("[1., 2.]" ${WORK}/dist)
endfunction()

function(use_sources)
  get_filename_component(root ${here}/../.. ABSOLUTE)
  set(pleat ${root})
  if(WAY STREQUAL "fetch_content")
    # As a release has it: without builds, which may lie beside the sources.
    file(GLOB sources RELATIVE ${root} ${root}/*)
    list(FILTER sources EXCLUDE REGEX "^(build|runs)")
    set(pleat ${WORK}/pleat.tar)
    run(${CMAKE_COMMAND} -E make_directory ${WORK})
    run(${CMAKE_COMMAND} -E chdir ${root} ${CMAKE_COMMAND} -E tar cf ${pleat} -- ${sources})
  endif()
  configure(${here} ${WORK}/build -DWAY=${WAY} -DPLEAT=${pleat} -DBUILD_SHARED_LIBS=${SHARED} -DPLEAT_CPU_VARIANTS=OFF
    -DPLEAT_CUDA=OFF)
  if(WHOLE)
    run(${CMAKE_COMMAND} --build ${WORK}/build)
    expect("[2., 4., 6.]" ${WORK}/build/consumer)
    expect("[1., 2.]" ${WORK}/build/consumer_dist)
  elseif(GENERATOR STREQUAL "Ninja")
    run(${CMAKE_COMMAND} --build ${WORK}/build --target CMakeFiles/consumer.dir/main.cpp${OBJECT})
  endif()
endfunction()

if(WAY MATCHES "^(find_package|pkg_config)$")
  cmake_language(CALL use_${WAY})
elseif(WAY MATCHES "^(add_subdirectory|fetch_content)$")
  use_sources()
else()
  message(FATAL_ERROR "WAY must be find_package, pkg_config, add_subdirectory or fetch_content, got '${WAY}'")
endif()
