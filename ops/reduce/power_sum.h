// Private header: not installed.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// A sum of powers |x|^p as sum * size^p, so that it has room wherever its root has. `size` is the largest
/// |x| (the smallest for p < 0), or 1 where powers cannot leave the range of double.
struct PowerSum {
  double sum = 0;
  double size = 1;
};

/// How the p-norm is put together, for p other than 0; infinity: of the largest |x|.
struct PowerNorm {
  double p;

  PLEAT_HOST_DEVICE bool is_largest() const { return p == std::numeric_limits<double>::infinity(); }

  template <class T>
  PLEAT_HOST_DEVICE void add(PowerSum& total, T x) const {
    const double a = std::fabs(static_cast<double>(x));
    if (p == 1) {
      total.sum += a;
    } else if (std::is_same_v<T, float> && p == 2) {  // which from 1e-90 to 1e77 are far from the ends
      total.sum += a * a;
    } else {
      (*this)(total, {1, a});
    }
  }

  /// Takes in another sum.
  PLEAT_HOST_DEVICE void operator()(PowerSum& into, const PowerSum& other) const {
    if (other.sum == 0) return;
    if (into.sum == 0 || is_largest()) {
      if (into.sum == 0 || (!(into.size >= other.size) && into.size == into.size))
        into = other;                      // a NaN stays
    } else if (into.size == other.size) {  // also where both are 0 or infinite
      into.sum += other.sum;
    } else if (p > 0 ? other.size > into.size : other.size < into.size) {
      into = {into.sum * power(into.size / other.size) + other.sum, other.size};
    } else {
      into.sum += other.sum * power(other.size / into.size);
    }
  }

  PLEAT_HOST_DEVICE double root(const PowerSum& total) const {
    if (total.sum == 0) return p > 0 ? 0 : std::numeric_limits<double>::infinity();
    if (is_largest() || p == 1) return total.size * total.sum;
    return total.size * (p == 2 ? std::sqrt(total.sum) : std::pow(total.sum, 1 / p));
  }

  PLEAT_HOST_DEVICE double power(double a) const {
    return p == 2 ? a * a : p == 3 ? a * a * a : std::pow(a, p);
  }
};

/// The p-norm, p > 0, of all elements of a tensor on the CPU.
double vector_norm(const char* op, const Tensor& x, double p);

}  // namespace pleat::ops
