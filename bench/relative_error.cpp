#include "pleat/bench/relative_error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"

namespace pleat::bench {

double relative_error(const Tensor& got, const Tensor& wanted) {
  check<ShapeError>(got.shape() == wanted.shape(), "relative_error: shapes must be equal, got {} and {}",
                    got.shape(), wanted.shape());
  const auto plain = [](const Tensor& t) {
    return ops::to_format(ops::cast(ops::to_device(t, Device()), float64), MemoryFormat::contiguous);
  };
  const Tensor a = plain(got);
  const Tensor b = plain(wanted);
  const double* from_a = a.data<double>();
  const double* from_b = b.data<double>();
  constexpr int64_t chunk = int64_t{1} << 16;
  const int64_t n = b.numel();
  const int64_t chunks = ceil_div(n, chunk);
  std::vector<double> differences(static_cast<std::size_t>(chunks));
  std::vector<double> lengths(static_cast<std::size_t>(chunks));
  parallel_chunks(chunks, [&](int64_t c) {
    double difference = 0;
    double length = 0;
    for (int64_t i = c * chunk; i < std::min(n, (c + 1) * chunk); ++i) {
      difference += (from_a[i] - from_b[i]) * (from_a[i] - from_b[i]);
      length += from_b[i] * from_b[i];
    }
    differences[static_cast<std::size_t>(c)] = difference;
    lengths[static_cast<std::size_t>(c)] = length;
  });
  double difference = 0;
  double length = 0;
  for (std::size_t c = 0; c < differences.size(); ++c) difference += differences[c], length += lengths[c];
  const double error = length > 0 ? std::sqrt(difference / length) : std::sqrt(difference);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

}  // namespace pleat::bench
