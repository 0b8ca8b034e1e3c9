// Private header: not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"

/// Linear maps over the spatial dimensions of a tensor [N, C, spatial...] that work on each dimension by
/// itself: average pooling, interpolation, and the adjoints of both, which are maps of the same kind.

namespace pleat::ops {

/// A sparse matrix [outputs, inputs]: row o has the taps first[o] ... first[o + 1] - 1, in ascending order of
/// index, and its sum is multiplied by scale[o].
struct SparseRows {
  int64_t inputs = 0;
  std::vector<int64_t> first{0};
  std::vector<int64_t> index;
  std::vector<double> weight;
  std::vector<double> scale;

  bool operator==(const SparseRows&) const = default;

  int64_t outputs() const { return static_cast<int64_t>(scale.size()); }
  void add_tap(int64_t input, double tap_weight) {
    index.push_back(input);
    weight.push_back(tap_weight);
  }
  void end_row(double row_scale) {
    first.push_back(static_cast<int64_t>(index.size()));
    scale.push_back(row_scale);
  }
  SparseRows transposed() const;
};

/// Throws OutOfMemoryError when the machine cannot hold rows of so many taps.
void check_rows(const char* op, int64_t outputs, int64_t taps_each);

/// One matrix for each spatial dimension: y[o1, o2 ...] = sum over i1, i2 ... of M1[o1, i1] M2[o2, i2] ...
/// x[i1, i2 ...].
struct LinearMap {
  std::vector<SparseRows> dims;

  bool operator==(const LinearMap&) const = default;
  LinearMap transposed() const;
};

struct LinearMapOptions {
  std::string implementation = {};          ///< "native", "reference"; empty: native
  std::optional<MemoryFormat> format = {};  ///< of the result; empty: that of x
};

/// y = map(x) for x [N, C, spatial...] whose sizes are the matrices' inputs, floating. Throws ShapeError when
/// the sizes disagree, DTypeError, DeviceError, ValueError for an implementation that does not exist.
Tensor apply_linear_map(const char* op, const LinearMap& map, const Tensor& x,
                        const LinearMapOptions& options = {});

/// Whether "reference" was asked for. Throws ValueError for a name that is neither that, "native", nor empty.
bool wants_reference(const char* op, const std::string& implementation);

}  // namespace pleat::ops
