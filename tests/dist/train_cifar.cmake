# train_cifar by several processes, and resumed with another number of them:
#   cmake -DPROGRAMS=<folder of the examples> -DLAUNCHER=<mpirun and the option for the number> -DWORK=<scratch folder> -P ...
cmake_minimum_required(VERSION 3.24)
include(${CMAKE_CURRENT_LIST_DIR}/../run_command.cmake)

file(REMOVE_RECURSE ${WORK})
run(${PROGRAMS}/make_shapes --output ${WORK}/shapes --train 130 --test 31)
set(options --data ${WORK}/shapes --model small --epochs 2 --augment crop,flip)

run(${LAUNCHER} 3 ${PROGRAMS}/train_cifar ${options} --batch-size 12 --output ${WORK}/three)
file(STRINGS ${WORK}/three/metrics.csv lines)
list(LENGTH lines count)
if(NOT count EQUAL 3)
  message(FATAL_ERROR "one process of three writes a line for each epoch, got\n${lines}")
endif()
foreach(file report.html weights.safetensors options.toml)
  if(NOT EXISTS ${WORK}/three/${file})
    message(FATAL_ERROR "${file} was not written by three processes")
  endif()
endforeach()

# What does not go together with several processes ends all of them with a line that says so.
execute_process(COMMAND ${LAUNCHER} 3 ${PROGRAMS}/train_cifar ${options} --batch-size 10 --output ${WORK}/uneven
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "--batch-size 10: there are 3 processes")
  message(FATAL_ERROR "a batch that three processes cannot share must be refused, got ${result}\n${output}")
endif()

# With batch norms of the whole batch, the loss is that of one process. The weights stand still: rounding would make the
# runs differ soon.
foreach(ranks 1 2)
  run(${LAUNCHER} ${ranks} ${PROGRAMS}/train_cifar --data ${WORK}/shapes --model resnet20 --augment none --epochs 1 --lr 1e-9
    --batch-size 26 --sync-batch-norm --no-report --output ${WORK}/sync${ranks})
  file(STRINGS ${WORK}/sync${ranks}/metrics.csv lines)
  list(GET lines 1 line)
  string(REGEX MATCH "^1,([0-9]+\\.[0-9][0-9][0-9])" line "${line}")
  set(loss_of_${ranks} ${CMAKE_MATCH_1})
endforeach()
if(NOT loss_of_1 OR NOT loss_of_1 STREQUAL loss_of_2)
  message(FATAL_ERROR "--sync-batch-norm: the first epoch's loss is ${loss_of_1} in one process and ${loss_of_2} in two")
endif()

# A run of three goes on with two.
run(${LAUNCHER} 2 ${PROGRAMS}/train_cifar --resume ${WORK}/three)
if(NOT output MATCHES "going on from[^%]*step 22")
  message(FATAL_ERROR "two processes must go on from the checkpoint of three, got\n${output}")
endif()
