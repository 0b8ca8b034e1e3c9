#include "pleat/train/test_time_augmentation.h"

#include <cmath>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat::train {

Tensor mirrored(const Tensor& pictures) { return flip(pictures, {-1}); }

TestTimeAugmentation::TestTimeAugmentation(nn::AnyModule net,
                                           std::vector<std::function<Tensor(const Tensor&)>> versions)
    : net_(std::move(net)), versions_(std::move(versions)) {
  for (const auto& version : versions_)
    check<ValueError>(version != nullptr, "TestTimeAugmentation: version {} is an empty function",
                      &version - versions_.data());
}

Tensor TestTimeAugmentation::forward(const Tensor& x) {
  std::vector<Tensor> found;
  const auto add = [&](const Tensor& version) {
    const Tensor logits = net_(version);
    check<ShapeError>(logits.rank() == 2 && logits.size(0) == x.size(0),
                      "TestTimeAugmentation: the network must give [{}, classes], got {}", x.size(0), logits);
    found.push_back(log_softmax(logits, 1));
  };
  add(x);
  for (const auto& version : versions_) add(version(x));
  return logsumexp(stack(found), {0}) - std::log(static_cast<double>(found.size()));
}

}  // namespace pleat::train
