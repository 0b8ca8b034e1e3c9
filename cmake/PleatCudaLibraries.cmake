# Finds NVIDIA's libraries, for Pleat's own build and, installed beside PleatConfig.cmake, for programs that link Pleat:
# CUDA::cudart_static, pleat_cuda::cublas, and optionally pleat_cuda::cudnn and pleat_cuda::nccl.
#
# cuBLAS, cuDNN and NCCL may come with the toolkit, with the system, or as Python packages (`pip install
# nvidia-cudnn-cu13` puts include/ and lib/ into site-packages/nvidia/cudnn). For the last, and for any other
# place, set PLEAT_NVIDIA_ROOT (variable of CMake or of the environment) to the folder: site-packages/nvidia,
# or a prefix with include/ and lib/.
include_guard(GLOBAL)

set(PLEAT_NVIDIA_ROOT "$ENV{PLEAT_NVIDIA_ROOT}" CACHE PATH
  "Where cuBLAS, cuDNN and NCCL are if not in the toolkit: a Python environment's site-packages/nvidia, or a prefix")

# An imported target pleat_cuda::<name> from a header and a library; nothing when one of them is not found.
function(pleat_find_nvidia_library name header)
  string(TOUPPER ${name} upper)
  set(places ${PLEAT_NVIDIA_ROOT} ${PLEAT_NVIDIA_ROOT}/${name})
  # The wheels of CUDA 13 share one folder.
  file(GLOB shared LIST_DIRECTORIES true ${PLEAT_NVIDIA_ROOT}/cu1[0-9])
  list(APPEND places ${shared})
  if(NOT PLEAT_NVIDIA_ROOT)
    set(places "")
  endif()
  find_path(PLEAT_${upper}_INCLUDE_DIR ${header} HINTS ${places} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  # A Python package has no lib<name>.so, only the name with a version.
  set(names ${name})
  foreach(version RANGE 20 2 -1)
    list(APPEND names lib${name}.so.${version})
  endforeach()
  # The header's own library, where several are installed.
  find_library(PLEAT_${upper}_LIBRARY NAMES ${names} NAMES_PER_DIR
    HINTS ${PLEAT_${upper}_INCLUDE_DIR}/.. ${places} ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
  mark_as_advanced(PLEAT_${upper}_INCLUDE_DIR PLEAT_${upper}_LIBRARY)
  if(PLEAT_${upper}_INCLUDE_DIR AND PLEAT_${upper}_LIBRARY AND NOT TARGET pleat_cuda::${name})
    add_library(pleat_cuda::${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(pleat_cuda::${name} PROPERTIES
      IMPORTED_LOCATION ${PLEAT_${upper}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${PLEAT_${upper}_INCLUDE_DIR})
  endif()
endfunction()

# Sets `obstacle` to what is missing, or to nothing. A macro: it finds a package for its caller.
macro(pleat_find_cuda_libraries obstacle)
  set(${obstacle} "")
  find_package(CUDAToolkit 12 QUIET)
  if(NOT CUDAToolkit_FOUND)
    set(${obstacle} "the CUDA toolkit (12 or newer) was not found; -DCUDAToolkit_ROOT= names its folder")
  elseif(NOT TARGET CUDA::cudart_static)
    set(${obstacle} "the CUDA toolkit in ${CUDAToolkit_LIBRARY_DIR} lacks libcudart_static.a")
  else()
    pleat_find_nvidia_library(cublas cublas_v2.h)
    if(NOT TARGET pleat_cuda::cublas)
      set(${obstacle} "cuBLAS was not found; PLEAT_NVIDIA_ROOT can name its folder")
    endif()
  endif()
endmacro()

# pleat_cuda::cudnn and PLEAT_CUDNN_VERSION, empty where there is none. Pleat uses version 9 or newer.
function(pleat_find_cudnn)
  set(version "")
  pleat_find_nvidia_library(cudnn cudnn_version.h)
  if(TARGET pleat_cuda::cudnn)
    file(STRINGS ${PLEAT_CUDNN_INCLUDE_DIR}/cudnn_version.h lines REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) [0-9]+")
    string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
    list(JOIN numbers "." version)
    list(GET numbers 0 major)
    file(REAL_PATH ${PLEAT_CUDNN_LIBRARY} library)
    if(library MATCHES "\\.so\\.([0-9]+)" AND NOT CMAKE_MATCH_1 EQUAL major)
      message(WARNING "Pleat is built without cuDNN: the header in ${PLEAT_CUDNN_INCLUDE_DIR} is of version ${version}, and\
 the library is ${library}. PLEAT_NVIDIA_ROOT can name the folder that has both.")
      set(version "")
    endif()
  endif()
  set(PLEAT_CUDNN_VERSION "${version}" PARENT_SCOPE)
endfunction()
