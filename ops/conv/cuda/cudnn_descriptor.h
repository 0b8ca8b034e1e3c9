// Private header: not installed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <cudnn.h>

#include "pleat/core/kernels/cuda_handles.h"

namespace pleat::ops {

/// A cudnnBackendDescriptor_t that is destroyed with its owner. What cuDNN refuses is thrown as check_dnn
/// does.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
    cuda::check_dnn(cudnnBackendCreateDescriptor(type, &descriptor_), op);
  }
  ~CudnnDescriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values) {
    cuda::check_dnn(cudnnBackendSetAttribute(descriptor_, name, type, count, values), op);
  }
  void set(cudnnBackendAttributeName_t name, int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  void set_number(cudnnBackendAttributeName_t name, double value, bool in_double) {
    const auto single = static_cast<float>(value);
    if (in_double)
      set(name, CUDNN_TYPE_DOUBLE, 1, &value);
    else
      set(name, CUDNN_TYPE_FLOAT, 1, &single);
  }
  void finalize() { cuda::check_dnn(cudnnBackendFinalize(descriptor_), op); }
  /// cuDNN's status: an engine may turn out not to support a graph.
  cudnnStatus_t try_finalize() { return cudnnBackendFinalize(descriptor_); }

  /// Reads up to `most` values into `values`; returns how many there are, which may be more.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
              void* values) const {
    int64_t count = 0;
    cuda::check_dnn(cudnnBackendGetAttribute(descriptor_, name, type, most, &count, values), op);
    return count;
  }
  /// The same for descriptors, made here, because cuDNN fills those that it is given.
  std::vector<CudnnDescriptor> get(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                   int64_t most) const {
    std::vector<CudnnDescriptor> descriptors;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = 0; i < most; ++i) {
      descriptors.emplace_back(type);
      raw.push_back(descriptors.back().descriptor_);
    }
    const int64_t count = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
    while (static_cast<int64_t>(descriptors.size()) > count) descriptors.pop_back();
    return descriptors;
  }

  cudnnBackendDescriptor_t raw() const { return descriptor_; }

 private:
  static constexpr const char* op = "conv";

  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace pleat::ops
