#include "pleat/train/learning_rate_finder.h"

#include <algorithm>
#include <cmath>

#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/plot/chart.h"

namespace pleat::train {
namespace {

/// Puts network, optimiser and random numbers back to where they were.
class Restore {
 public:
  Restore(nn::Module& net, optim::Optimizer& optimizer)
      : net_(net),
        optimizer_(optimizer),
        weights_(nn::clone(net.state_dict())),
        state_(optimizer.state_dict()) {}
  ~Restore() {
    net_.load_state_dict(weights_);
    optimizer_.load_state_dict(state_);
    optimizer_.zero_grad();
    default_generator() = random_;
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  nn::Module& net_;
  optim::Optimizer& optimizer_;
  nn::StateDict weights_, state_;
  Generator random_ = default_generator();
};

double steepest(const LearningRates& found) {
  double suggestion = 0, least_slope = 0;
  // Beyond the least loss a fall is one back from a peak.
  const auto least = std::ranges::min_element(found.losses) - found.losses.begin();
  for (std::size_t i = 1; i < static_cast<std::size_t>(least); ++i)
    if (const double slope = found.losses[i + 1] - found.losses[i - 1]; slope < least_slope)
      least_slope = slope, suggestion = found.rates[i];  // rates are a constant factor apart
  return suggestion;
}

}  // namespace

LearningRates find_learning_rate(nn::Module& net, optim::Optimizer& optimizer,
                                 const std::function<double()>& step,
                                 const LearningRateFinderOptions& options) {
  check<ValueError>(options.from > 0 && std::isfinite(options.to) && options.to > options.from,
                    "find_learning_rate: rates must go from above 0 to a larger one, got {} to {}",
                    options.from, options.to);
  check<ValueError>(options.steps >= 2, "find_learning_rate: steps must be at least 2, got {}",
                    options.steps);
  check<ValueError>(options.smoothing >= 0 && options.smoothing < 1,
                    "find_learning_rate: smoothing must be at least 0 and below 1, got {}",
                    options.smoothing);
  check<ValueError>(options.stop_at > 1, "find_learning_rate: stop_at must be above 1, got {}",
                    options.stop_at);
  const Restore restore(net, optimizer);
  LearningRates found;
  double mean = 0, weight = 0, least = 0;
  for (int64_t i = 0; i < options.steps; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(options.steps - 1);
    const double rate = options.from * std::pow(options.to / options.from, share);
    optimizer.set_lr(rate);
    const double loss = step();
    check<NumericError>(i > 0 || std::isfinite(loss), "find_learning_rate: the first loss is {}", loss);
    if (!std::isfinite(loss)) break;
    mean = options.smoothing * mean + (1 - options.smoothing) * loss;
    weight = options.smoothing * weight + (1 - options.smoothing);
    const double smoothed = mean / weight;
    least = i == 0 ? smoothed : std::min(least, smoothed);
    if (least > 0 && smoothed > options.stop_at * least) break;
    found.rates.push_back(rate);
    found.losses.push_back(smoothed);
  }
  found.suggestion = steepest(found);
  return found;
}

std::string LearningRates::plot() const {
  plot::LineChart chart{.title = "Loss over the learning rate",
                        .subtitle = suggestion > 0 ? fmt::format("steepest at {:.2g}", suggestion) : "",
                        .x_axis = "learning rate",
                        .y_axis = "smoothed loss",
                        .log_x = true};
  for (std::size_t i = 0; i < rates.size(); ++i) chart.add("loss", {rates[i], losses[i]});
  return plot::to_svg(chart);
}

}  // namespace pleat::train
