#include "pleat/bench/progress.h"

#include <cmath>
#include <memory>

#include "pleat/train/progress.h"

namespace pleat::bench {

std::function<void(double share)> progress_bar(const std::string& label) {
  constexpr int64_t steps = 1000;
  return [bar = std::make_shared<train::ProgressBar>(label, steps)](double share) {
    bar->update(std::llround(steps * share), {});
  };
}

}  // namespace pleat::bench
