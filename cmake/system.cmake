# What depends on the operating system. Offers
#   pleat_system_sources(<out-var> <file>...)   which of these files belong to this build: *_posix.cpp to all systems but
#                                               Windows, *_linux.cpp, *_macos.cpp and *_windows.cpp to one
include_guard()
set(PLEAT_SYSTEM_FLAGS "")
set(PLEAT_SYSTEM_LINK_FLAGS "")

# A program and a DLL each have variables of headers of their own, such as those by whose address a scope (ConvPolicy,
# Autocast) is found: a program's would be ignored.
if(WIN32 AND BUILD_SHARED_LIBS)
  message(FATAL_ERROR "Pleat is no DLL on Windows, where its scopes would not reach it: set BUILD_SHARED_LIBS=OFF. \
The static library can be part of a DLL of yours.")
endif()

function(pleat_system_sources out)
  set(others linux macos windows)
  if(WIN32)
    set(own windows)
    list(APPEND others posix)
  elseif(APPLE)
    set(own macos)
  else()
    set(own linux)
  endif()
  list(REMOVE_ITEM others ${own})
  list(JOIN others "|" others)
  set(files ${ARGN})
  list(FILTER files EXCLUDE REGEX "_(${others})(_test)?\\.cpp$")
  set(${out} ${files} PARENT_SCOPE)
endfunction()

if(MINGW)
  # Its std::thread and <filesystem> are for Windows 7; names of files and consoles are as Windows 10 has them.
  add_compile_definitions(_WIN32_WINNT=0x0A00)
  # Names of files in std::string are UTF-8 (core/system/mbrtowc_windows.cpp), in all of a program.
  set(PLEAT_SYSTEM_LINK_FLAGS -Wl,--wrap=mbrtowc,-u,__wrap_mbrtowc)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ takes the stack for aligned by 32 and 64 bytes, which Windows does not promise (GCC bug 54412): the assembler
    # writes moves of vectors that need no alignment, which are as fast.
    # For Windows g++ takes an inline function for the one that it compiles itself, and relies on the registers which that
    # one leaves alone. The linker may keep that of another file, compiled with other options. So programs that use Pleat
    # are compiled with these options, too.
    set(PLEAT_SYSTEM_FLAGS -Wa,-muse-unaligned-vector-move -fno-ipa-ra -fno-ipa-stack-alignment)
    add_compile_options(${PLEAT_SYSTEM_FLAGS})
  endif()
endif()
