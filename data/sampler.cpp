#include "pleat/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/data/labels.h"

namespace pleat::data {

Sampler weighted_random_sampler(const RealList& weights, Integer num_samples) {
  const int64_t size = num_samples;
  check<ValueError>(size >= 1, "weighted_random_sampler: num_samples must be at least 1, got {}", size);
  std::vector<double> sums;  // of the weights up to each
  double sum = 0;
  for (const double weight : weights) {
    check<ValueError>(
        weight >= 0 && std::isfinite(weight),
        "weighted_random_sampler: weights must be finite and not negative, got {} for sample {}", weight,
        sums.size());
    sums.push_back(sum += weight);
  }
  check<ValueError>(sum > 0 && std::isfinite(sum),
                    "weighted_random_sampler: the sum of the {} weights must be finite and above 0, got {}",
                    sums.size(), sum);
  return {size, [sums = std::move(sums), size](int64_t, Generator& generator) {
            const double total = sums.back(), below_total = std::nextafter(total, 0.0);
            std::vector<int64_t> order;
            order.reserve(static_cast<std::size_t>(size));
            for (const double u :
                 rand({size}, {.dtype = float64, .device = Device{}}, generator).to_vector<double>()) {
              // The first whose sum is above: never one of weight 0.
              const auto found = std::ranges::upper_bound(sums, std::min(u * total, below_total));
              order.push_back(found - sums.begin());
            }
            return order;
          }};
}

Sampler class_balanced_sampler(const Dataset& dataset) {
  const std::vector<int64_t> labels = labels_of("class_balanced_sampler", dataset);
  check<ValueError>(!labels.empty(), "class_balanced_sampler: the data set is empty");
  std::map<int64_t, double> counts;
  for (const int64_t label : labels) ++counts[label];
  RealList weights;
  for (const int64_t label : labels) weights.push_back(1 / counts[label]);
  return weighted_random_sampler(weights, labels.size());
}

}  // namespace pleat::data
