// One filter bank over many small patches: as a batch, as frames, by groups, by hand, in a loop.
#include "pleat/bench/ask/questions.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 32, filters_out = 64;

/// One call for each way; with `tuned`, each chooses the fastest plan by measurement.
Way batch_way(const Tensor& x, const Tensor& filters, const std::string& implementation, bool tuned) {
  const std::string name =
      "a batch" + (implementation.empty() ? "" : ", " + implementation) + (tuned ? ", tuned" : "");
  const auto compute = [=] {
    const ConvPolicy policy({.benchmark = tuned});  // of the backward pass, too
    return as_batch(x, filters, implementation);
  };
  return {name, compute, {x, filters}, tuned};
}

/// `few`: also those that take too long, or too much memory, for many patches.
std::vector<Way> ways_of(const Tensor& x, const Tensor& filters, bool few) {
  std::vector<Way> ways;
  const Strings names = fast_implementations(flatten(x, 0, 1), filters, {.padding = 1});
  for (const std::string& name : names) ways.push_back(batch_way(x, filters, name, false));
  ways.push_back(batch_way(x, filters, "", true));
  if (x.device().is_cuda())  // elsewhere few have plans to choose from
    for (const std::string& name : names) ways.push_back(batch_way(x, filters, name, true));
  using Write = Tensor(const Tensor& x, const Tensor& filters);
  const auto add = [&](const char* name, Write* write) {
    ways.push_back({name, [=] { return write(x, filters); }, {x, filters}});
  };
  add("(1, 3, 3) conv3d", as_frames);
  add("unfold and product", by_unfold);
  if (few) add("a plain loop", by_loop);
  if (few) add("groups = N", as_groups);
  return ways;
}

Tensor patches_of(const Tensor& batch, const Tensor& like) {
  return reshape(batch, {like.size(0), like.size(1), batch.size(1), batch.size(2), batch.size(3)});
}

}  // namespace

Tensor as_batch(const Tensor& x, const Tensor& filters, const std::string& implementation) {
  return patches_of(conv2d(flatten(x, 0, 1), filters, {.padding = 1, .implementation = implementation}), x);
}

Tensor as_frames(const Tensor& x, const Tensor& filters) {
  const Tensor y = conv3d(transpose(x, 1, 2), unsqueeze(filters, 2), {.padding = {0, 1, 1}});
  return transpose(y, 1, 2);
}

Tensor by_unfold(const Tensor& x, const Tensor& filters) {
  return patches_of(conv_by_product(flatten(x, 0, 1), filters, 1, false), x);
}

Tensor by_loop(const Tensor& x, const Tensor& filters) {
  std::vector<Tensor> results;
  for (int64_t n = 0; n < x.size(1); ++n) results.push_back(conv2d(select(x, 1, n), filters, {.padding = 1}));
  return stack(results, 1);
}

Tensor as_groups(const Tensor& x, const Tensor& filters) {
  const int64_t n = x.size(1);
  const Tensor y = conv2d(flatten(x, 1, 2), repeat(filters, {n, 1, 1, 1}), {.padding = 1, .groups = n});
  return reshape(y, {x.size(0), n, filters.size(0), x.size(3), x.size(4)});
}

void patches(Compare& compare) {
  const bool quick = compare.options.quick;
  const TensorOptions on{.device = compare.options.device};
  const int64_t few = quick ? 40 : 1280, many = quick ? 160 : 20480;  // `many` is that of the question
  const int64_t image = quick ? 50 : 572;                             // about as many pixels in one piece
  compare.setup = {
      fmt::format("x [1, N, {}, H, H], {} filters of 3x3, padding 1, float32; the dense image is "
                  "[1, {}, {}, {}]. Backward is that of patches and filters.",
                  channels, filters_out, channels, image, image),
      "The first rows of the question's table, cuDNN off, on and benchmarked, are here an "
      "implementation each and \"tuned\"."};
  manual_seed(1);
  const Tensor filters = (randn({filters_out, channels, 3, 3}, on) * 0.05).detach().set_requires_grad();
  const Tensor whole = randn({1, channels, image, image}, on).set_requires_grad();
  for (const auto& [n, side] : std::vector<std::pair<int64_t, int64_t>>{{few, 4}, {many, 4}, {many / 4, 8}}) {
    const Tensor x = randn({1, n, channels, side, side}, on).set_requires_grad();
    std::vector<Way> ways = ways_of(x, filters, n == few);
    if (n != few)
      ways.push_back(
          {"one dense image", [=] { return conv2d(whole, filters, {.padding = 1}); }, {whole, filters}});
    compare.measure(fmt::format("{0} patches of {1}x{1}", n, side), ways, {forward, backward});
  }
}

}  // namespace pleat::bench::ask
