// One computation written as conv2d and as conv3d: their backward passes beside each other.
#include "pleat/bench/ask/questions.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 2, filters = 2;

/// As the question has it: only the weight's gradient, of the sum of the result, accumulated.
std::vector<Way> summed_up(std::vector<Way> ways) {
  for (Way& way : ways) {
    way.inputs[0].set_requires_grad(false);
    way.compute = [compute = way.compute] {
      const Tensor y = compute();
      sum(y).backward();
      return y;
    };
  }
  return ways;
}

}  // namespace

Tensor frames_of(const Tensor& videos) {
  const Shape& s = videos.shape();
  return reshape(permute(videos, {0, 2, 1, 3, 4}), {s[0] * s[2], s[1], s[3], s[4]});
}

std::vector<Way> frames_and_videos(const Tensor& videos, const Tensor& w, const std::string& implementation) {
  using Conv = Tensor(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options);
  const auto way = [&](const char* name, Conv* conv, const Tensor& input, const Tensor& weight,
                       const Padding& padding) {
    const std::vector<Tensor> own{clone(input).set_requires_grad(), clone(weight).set_requires_grad()};
    const ConvOptions options{.padding = padding, .implementation = implementation};
    return Way{name, [=] { return conv(own[0], own[1], {}, options); }, own};
  };
  const Tensor inner = narrow(videos, 2, 1, videos.size(2) - 2);
  return {way("conv2d", conv2d, frames_of(videos), squeeze(w, 2), 1),
          way("conv3d", conv3d, videos, w, {0, 1, 1}), way("conv3d, not reduced", conv3d, inner, w, 1)};
}

void conv2d_vs_conv3d(Compare& compare) {
  manual_seed(1);
  const bool quick = compare.options.quick;
  const int64_t depth = quick ? 50 : 500, size = quick ? 12 : 64;
  const Tensor videos = randn({8, channels, depth, size, size}, {.device = compare.options.device});
  const Tensor w = randn({filters, channels, 1, 3, 3}, {.device = compare.options.device});
  compare.setup = {
      fmt::format(
          "conv2d: frames of {} with {} filters (3, 3); conv3d: the same videos and filters as (1, 3, "
          "3); padding 1, float32.",
          to_string(videos.shape()), filters),
      "\"Not reduced\": frames of padding at both ends keep the problem in three dimensions.",
      "\"As in the question\": forward, sum, backward(); the input needs no gradient."};
  for (const std::string& name : fast_implementations(videos, w, {.padding = {0, 1, 1}})) {
    std::vector<Way> ways = frames_and_videos(videos, w, name);
    compare.measure(name, ways, {forward});
    compare.measure(name + ", gradients of weight and input", ways, {backward});
    for (Way& way : ways) way.inputs = {way.inputs[1]};
    compare.measure(name + ", gradient of the weight alone", ways, {backward});
    compare.measure(name + ", as in the question", summed_up(frames_and_videos(videos, w, name)), {recorded});
  }
}

}  // namespace pleat::bench::ask
