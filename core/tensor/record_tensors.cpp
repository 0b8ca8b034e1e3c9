#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/tensor.h"

/// The part of record_function.h that has to know what a Tensor is.

namespace pleat {
namespace {

std::vector<const Tensor*> addresses(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> list;
  list.reserve(tensors.size());
  for (const Tensor& tensor : tensors) list.push_back(&tensor);
  return list;
}

}  // namespace

void RecordOp::begin_with(const char* name, std::span<const Tensor> inputs) {
  begin({.kind = RangeKind::op, .name = name, .inputs = addresses(inputs)});
}

void RecordBackward::begin_with(const std::string& name, uint64_t sequence,
                                const std::vector<Tensor>& gradients) {
  begin({.kind = RangeKind::backward, .name = name, .inputs = addresses(gradients), .sequence = sequence});
}

}  // namespace pleat
