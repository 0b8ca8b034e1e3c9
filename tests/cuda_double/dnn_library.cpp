// NVIDIA's own cuDNN beside the double's, for what it checks without a device. CUDA_DOUBLE_CUDNN is the
// library's file, where it is installed.
#include "dnn_library.h"

#include <string>
#include <vector>

#include "finding.h"
#include <dlfcn.h>

namespace cuda_double {
namespace {

#ifdef CUDA_DOUBLE_CUDNN

/// A function of the library, not the double's of the same name.
void* function(const char* name) {
  static void* const library = [] {
    // It loads parts of its own, whose names for one another must not mean the double's.
    void* const loaded = dlopen(CUDA_DOUBLE_CUDNN, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (loaded == nullptr) finding(std::string("cuDNN, which was there at build time: ") + dlerror());
    return loaded;
  }();
  void* const found = dlsym(library, name);
  if (found == nullptr) finding(std::string("cuDNN has no ") + name);
  return found;
}
#define LIBRARY(name) (reinterpret_cast<decltype(&::name)>(function(#name)))

bool checks(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return true;
    default:
      return false;
  }
}

#endif

}  // namespace

#ifdef CUDA_DOUBLE_CUDNN

LibraryDescriptor::LibraryDescriptor(cudnnBackendDescriptorType_t type) {
  if (checks(type) && LIBRARY(cudnnBackendCreateDescriptor)(type, &descriptor_) != CUDNN_STATUS_SUCCESS)
    finding("cuDNN makes no descriptor of kind " + std::to_string(static_cast<int>(type)));
}

LibraryDescriptor::~LibraryDescriptor() {
  if (descriptor_ != nullptr) LIBRARY(cudnnBackendDestroyDescriptor)(descriptor_);
}

cudnnStatus_t LibraryDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                     int64_t count, const void* values,
                                     std::span<const LibraryDescriptor* const> parts) {
  // A graph is checked without a handle, which is one of the double's.
  if (descriptor_ == nullptr || type == CUDNN_TYPE_HANDLE) return CUDNN_STATUS_SUCCESS;
  std::vector<cudnnBackendDescriptor_t> own;
  for (const LibraryDescriptor* part : parts) own.push_back(part->descriptor_);
  return LIBRARY(cudnnBackendSetAttribute)(descriptor_, name, type, count, own.empty() ? values : own.data());
}

cudnnStatus_t LibraryDescriptor::finalize() {
  return descriptor_ == nullptr ? CUDNN_STATUS_SUCCESS : LIBRARY(cudnnBackendFinalize)(descriptor_);
}

cudnnStatus_t library_takes(cudnnDataType_t type, const int (&sizes)[4], const int (&strides)[4]) {
  cudnnTensorDescriptor_t tensor = nullptr;
  if (LIBRARY(cudnnCreateTensorDescriptor)(&tensor) != CUDNN_STATUS_SUCCESS)
    finding("cuDNN makes no descriptor of a tensor");
  const cudnnStatus_t status = LIBRARY(cudnnSetTensor4dDescriptorEx)(
      tensor, type, sizes[0], sizes[1], sizes[2], sizes[3], strides[0], strides[1], strides[2], strides[3]);
  LIBRARY(cudnnDestroyTensorDescriptor)(tensor);
  return status;
}

#else

LibraryDescriptor::LibraryDescriptor(cudnnBackendDescriptorType_t) {}
LibraryDescriptor::~LibraryDescriptor() = default;
cudnnStatus_t LibraryDescriptor::set(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                                     const void*, std::span<const LibraryDescriptor* const>) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t LibraryDescriptor::finalize() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t library_takes(cudnnDataType_t, const int (&)[4], const int (&)[4]) {
  return CUDNN_STATUS_SUCCESS;
}

#endif

}  // namespace cuda_double
