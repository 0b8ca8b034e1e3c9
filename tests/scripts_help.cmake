# Checks that scripts/*.sh --help prints help and does nothing else, and that a wrong option does nothing at all:
#   cmake -DROOT=<source tree> -DWORK=<scratch> -P scripts_help.cmake
# They run in a copy of the scripts, with a PATH that has no compiler, no CMake and no package manager.
cmake_minimum_required(VERSION 3.24)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/tools)
foreach(tool bash basename dirname sed)
  find_program(found_${tool} ${tool} REQUIRED)
  file(CREATE_LINK ${found_${tool}} ${WORK}/tools/${tool} SYMBOLIC)
endforeach()
file(COPY ${ROOT}/scripts DESTINATION ${WORK}/copy)
file(GLOB_RECURSE before LIST_DIRECTORIES TRUE ${WORK}/copy/*)

# Sets `result`, `output` and `errors`.
function(run script)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=PLEAT_SKIP_SETUP PATH=${WORK}/tools
      ${WORK}/copy/scripts/${script} ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  file(GLOB_RECURSE after LIST_DIRECTORIES TRUE ${WORK}/copy/*)
  if(NOT after STREQUAL before)
    message(FATAL_ERROR "${script} ${ARGN}: made files; there are\n${after}")
  endif()
  foreach(name result output errors)
    set(${name} "${${name}}" PARENT_SCOPE)
  endforeach()
endfunction()

file(GLOB scripts RELATIVE ${ROOT}/scripts ${ROOT}/scripts/*.sh)
list(REMOVE_ITEM scripts common.sh)  # is only sourced
set(passing_options_on coverage.sh demo.sh test.sh test_variants.sh test_windows.sh)
foreach(script IN LISTS scripts)
  foreach(arguments "--help" "-h" "anything;--help")
    run(${script} ${arguments})
    if(result OR errors OR NOT output MATCHES "^[A-Z][^\n]*\n.*\n$")
      message(SEND_ERROR "${script} ${arguments}: must print help, ended with ${result}\n${output}${errors}")
    endif()
    string(REGEX MATCH "[^\n]{81,}" wide "${output}")
    if(wide)
      message(SEND_ERROR "${script} ${arguments}: must fit 80 columns\n${wide}")
    endif()
  endforeach()
  if(NOT script IN_LIST passing_options_on)
    run(${script} --no-such-option)
    if(NOT result EQUAL 2 OR output OR NOT errors MATCHES "^${script}: there is no option --no-such-option \\(see ")
      message(SEND_ERROR "${script} --no-such-option: must be refused, ended with ${result}\n${output}${errors}")
    endif()
  endif()
endforeach()
list(LENGTH scripts number)
if(number LESS 10)
  message(FATAL_ERROR "only ${number} scripts were found")
endif()
