# PLEAT_SANITIZE=address|undefined|thread instruments everything that is built after this file is included.
include_guard()

set(PLEAT_SANITIZE "" CACHE STRING "Sanitizer: address, undefined or thread; empty for none")
set_property(CACHE PLEAT_SANITIZE PROPERTY STRINGS "" address undefined thread)

if(PLEAT_SANITIZE)
  if(NOT PLEAT_SANITIZE MATCHES "^(address|undefined|thread)$")
    message(FATAL_ERROR "PLEAT_SANITIZE: must be address, undefined or thread, got '${PLEAT_SANITIZE}'")
  endif()
  add_compile_options(-fsanitize=${PLEAT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PLEAT_SANITIZE})
  if(PLEAT_SANITIZE STREQUAL "undefined")
    # Without this a finding is only printed, and the test passes.
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()
