# Fails when a public function or module that takes integers is in no sweep of this folder:
#   cmake -DROOT=<source tree> -P complete.cmake
#
# A function counts when one of its parameters is an integer, a list of them, a plain number or an options struct; a
# raw one of ops/ may be swept through the differentiable one of its name.
cmake_minimum_required(VERSION 3.24)

set(integers "int64_t|uint64_t|int |size_t|Integer|Dims|PerDim|Padding|Shape|Sizes|Number|Scalar")
# Options that do not count: those whose integers are swept where a call names them beside the options ...
set(other_options VarOptions NormOptions ConvPolicyOptions)
# Functions that write or read no element and no size that an integer could make wrong.
set(exempt make_tensor tune_conv set_limit requested_conv find_conv choose_conv requested_layout simplify
  make_conv_problem is_pointwise
  choose_batch_norm batch_norm_problem batch_norm_backward_problem from_numbers set_seed set_draws set_random_stream
  uniform below throw_wrong_type load_state_dict copy_state summary adjust_colors write_synthetic_shapes)
# Parts of modules and distributions, which are swept.
list(APPEND exempt check_layer magnitudes with_magnitudes power_iteration spectrally_normal)

file(GLOB tests ${ROOT}/tests/limits/*_test.cpp ${ROOT}/tests/nn/module_cases.cpp)
set(swept "")
foreach(file IN LISTS tests)
  file(READ ${file} text)
  string(APPEND swept "${text}")
endforeach()

file(GLOB_RECURSE headers ${ROOT}/ops/*.h)
file(GLOB more ${ROOT}/autograd/functions.h ${ROOT}/autograd/copy.h ${ROOT}/nn/*.h ${ROOT}/data/transforms.h ${ROOT}/data/synthetic_shapes.h
  ${ROOT}/core/tensor/create.h ${ROOT}/core/random/random.h ${ROOT}/core/parallel/parallel.h ${ROOT}/core/memory/allocator.h)
list(APPEND headers ${more})
# ... and those without any.
foreach(header IN LISTS headers)
  file(READ ${header} text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "= {[^{}]*}" "" text "${text}")
  string(REGEX REPLACE "[; \n]+" " " text "${text}")
  string(REGEX MATCHALL "struct [A-Za-z0-9]+Options {[^{}]*}" structs "${text}")
  foreach(struct IN LISTS structs)
    if(NOT struct MATCHES "${integers}|Options [a-z_]")
      string(REGEX REPLACE "^struct ([A-Za-z0-9]+) .*" "\\1" name "${struct}")
      list(APPEND other_options ${name})
    endif()
  endforeach()
endforeach()
set(missing "")
set(count 0)
foreach(header IN LISTS headers)
  file(STRINGS ${header} first LIMIT_COUNT 1)
  if(first MATCHES "^// Private header")
    continue()
  endif()
  file(READ ${header} text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "namespace detail {.*}  *// *namespace detail" "" text "${text}")
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE where)
  # A result, a name, its parameters; what stands in a class is a method of a module or of options.
  string(REGEX MATCHALL "(Tensor|void|bool|double|int64_t|ValuesIndices|VarMean|[A-Z][A-Za-z]+|>)&? [a-z_0-9]+\\([^()]*[()]"
    functions "${text}")
  foreach(function IN LISTS functions)
    string(REGEX REPLACE "^[^ ]+ ([a-z_0-9]+)\\(.*" "\\1" name "${function}")
    string(REGEX REPLACE "^[^(]*\\(" "" parameters "${function}")
    foreach(options IN LISTS other_options)
      string(REGEX REPLACE "(ops::)?${options}" "" parameters "${parameters}")
    endforeach()
    if(NOT parameters MATCHES "${integers}|Options|span<const (ops::)?Image" OR
       name IN_LIST exempt OR name MATCHES "^(forward|members|operator.*|options_text|type_name)$")
      continue()
    endif()
    math(EXPR count "${count} + 1")
    if(NOT swept MATCHES "[^a-zA-Z_0-9.]${name}[(\",)]")
      list(APPEND missing "${where}: ${name}")
    endif()
  endforeach()
  if(where MATCHES "^nn/")
    string(REGEX MATCHALL "explicit [A-Z][A-Za-z0-9]*\\([A-Za-z0-9]*Options" modules "${text}")
    foreach(module IN LISTS modules)
      string(REGEX REPLACE "explicit ([A-Za-z0-9]*)\\(.*" "\\1" name "${module}")
      string(REGEX REPLACE ".*\\(" "" options "${module}")
      if(options IN_LIST other_options)
        continue()
      endif()
      math(EXPR count "${count} + 1")
      if(NOT swept MATCHES "${name}[0-9d({\"]")
        list(APPEND missing "${where}: ${name}")
      endif()
    endforeach()
  endif()
endforeach()

if(missing)
  list(REMOVE_DUPLICATES missing)
  list(JOIN missing "\n  " missing)
  message(FATAL_ERROR "No sweep in tests/limits/ calls these with integers from all over int64:\n  ${missing}")
endif()
# Were the headers written in another way, nothing would be found and nothing missing.
if(count LESS 150)
  message(FATAL_ERROR "only ${count} functions and modules were found in the headers; at least 150 are there")
endif()
message(STATUS "${count} functions and modules are swept")
