#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"

/// The functions whose kernels are counted (count_ops.cpp).

namespace pleat::test {

using Tensors = std::vector<Tensor>;

/// How the tensors of a row lie.
struct Setting {
  DType dtype;
  MemoryFormat format;

  /// Normal numbers on the GPU, in the format or row-major.
  Tensor images(const Shape& shape) const;
  Tensor rows(const Shape& shape) const;
};

/// A function of tensors, the first of which are differentiated.
struct CountedCall {
  Tensors inputs;
  std::function<Tensors(const Tensors&)> function;
  int differentiated = 1;
  /// Where inputs and results are not what kernels here move: elements and bytes, forward and backward.
  std::array<double, 2> elements = {}, least_bytes = {};
};
struct Row {
  std::string name;
  bool of_images;  ///< also in channels_last
  CountedCall (*make)(const Setting&);
};

const std::vector<Row>& rows_to_count();

}  // namespace pleat::test
