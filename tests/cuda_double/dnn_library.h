#pragma once

#include <span>

#include <cudnn.h>

namespace cuda_double {

/// A descriptor of NVIDIA's cuDNN that is told what the double's own is told: of a tensor, an operation or a
/// graph, which cuDNN checks without a device. Of any other kind, and where cuDNN is not installed, it takes
/// all.
class LibraryDescriptor {
 public:
  explicit LibraryDescriptor(cudnnBackendDescriptorType_t type);
  ~LibraryDescriptor();
  LibraryDescriptor(const LibraryDescriptor&) = delete;
  LibraryDescriptor& operator=(const LibraryDescriptor&) = delete;

  /// `parts`: what `values` are descriptors of, in their order.
  cudnnStatus_t set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                    const void* values, std::span<const LibraryDescriptor* const> parts);
  cudnnStatus_t finalize();

 private:
  [[maybe_unused]] cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// Whether NVIDIA's cuDNN takes such a tensor [n, c, h, w]; success where it is not installed.
cudnnStatus_t library_takes(cudnnDataType_t type, const int (&sizes)[4], const int (&strides)[4]);

}  // namespace cuda_double
