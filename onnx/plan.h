// Private header: not installed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pleat/onnx/trace.h"

/// What several runs of one function have in common: of batches of other sizes, and of other numbers.

namespace pleat::onnx {

/// scale * batch + offset.
struct Size {
  int64_t scale = 0;
  int64_t offset = 0;

  bool fixed() const { return scale == 0; }
  int64_t at(int64_t batch) const { return scale * batch + offset; }
  bool operator==(const Size&) const = default;
};
using SizeList = std::vector<Size>;

struct Plan {
  Trace trace;                                           ///< of the example inputs
  std::vector<SizeList> shapes;                          ///< of each value
  std::vector<std::map<std::string, SizeList>> numbers;  ///< of each call: its attributes that are integers
  /// The input, and its dimension, that has the size of the batch; -1: it is fixed.
  int batch_input = -1;
  int64_t batch_dim = 0;
};

/// The trace as it is for another size of the batch.
Trace trace_of(const Plan& plan, int64_t batch);

/// The dimension of each input that is the batch, or -1, of one for all or one for each; empty where none is
/// given. Throws ValueError, beginning with `op`, unless they are dimensions of the inputs.
std::vector<int64_t> batch_dims_of(const char* op, const std::vector<Tensor>& inputs,
                                   const IntegerList& given);

/// `batch_dims`: the dimension of each input that is the batch, or -1; empty: the batch is fixed. Throws
/// ValueError where a run differs from the others in more than sizes.
Plan make_plan(nn::Module* net, const Function& function, const std::vector<Tensor>& inputs,
               const std::vector<int64_t>& batch_dims);

}  // namespace pleat::onnx
