#include "pleat/bench/ask/questions.h"
#include "pleat/bench/charts.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 32, side = 4, filters_out = 64;
const std::string dense = "one dense image";  ///< a way: as many pixels, about, in one piece
const std::string together = "forward and backward", per_million = "for a million results";  ///< passes

std::string problem_of(int64_t n) { return fmt::format("{} patches", n); }

/// Those that are compared over the number of patches; with `all`, and with tuning.
std::vector<Way> ways_of(const Tensor& x, const Tensor& filters, bool all) {
  std::vector<Way> ways;
  const auto add_batch = [&](const std::string& name, const std::string& implementation, bool tuned) {
    const auto compute = [=] {
      const ConvPolicy policy({.benchmark = tuned});  // of the backward pass, too
      return as_batch(x, filters, implementation);
    };
    ways.push_back({name, compute, {x, filters}, tuned});
  };
  const Strings names = fast_implementations(flatten(x, 0, 1), filters, {.padding = 1});
  for (const std::string& name : names) add_batch("a batch, " + name, name, false);
  ways.push_back({"(1, 3, 3) conv3d", [=] { return as_frames(x, filters); }, {x, filters}});
  ways.push_back({"unfold and product", [=] { return by_unfold(x, filters); }, {x, filters}});
  if (all) add_batch("a batch, tuned", "", true);
  if (all && x.device().is_cuda())  // elsewhere few have plans to choose from
    for (const std::string& name : names) add_batch("a batch, " + name + ", tuned", name, true);
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

Answer patches(const AskOptions& options) {
  const int64_t image = options.quick ? 60 : 600;
  const std::vector<int64_t> numbers =  // the last one is that of the question
      options.quick ? std::vector<int64_t>{40, 80, 160}
                    : std::vector<int64_t>{1280, 2560, 5120, 10240, 20480};
  Answer answer{
      .setup = {fmt::format("x [1, N, {}, {}, {}], {} filters of 3x3, padding 1, float32; the dense image is "
                            "[1, {}, {}, {}]. Backward is that of patches and filters.",
                            channels, side, side, filters_out, channels, image, image)}};
  const TensorOptions on{.device = options.device};
  Times& times = answer.times;
  manual_seed(1);
  const Tensor filters = (randn({filters_out, channels, 3, 3}, on) * 0.05).detach().set_requires_grad();
  const Tensor whole = randn({1, channels, image, image}, on).set_requires_grad();
  for (const int64_t n : numbers) {
    const Tensor x = randn({1, n, channels, side, side}, on).set_requires_grad();
    std::vector<Way> ways = ways_of(x, filters, n == numbers.back());
    if (n == numbers.back())
      ways.push_back({dense, [=] { return conv2d(whole, filters, {.padding = 1}); }, {whole, filters}});
    for (Record& record : times.measure(options, problem_of(n), ways, {forward, backward})) {
      const int64_t pixels = record.label("way") == dense ? image * image : n * side * side;
      record.set_value("outputs", static_cast<double>(filters_out * pixels));
    }
  }
  times.add_sum(together, {forward, backward});
  answer.plot = time_lines({.title = fmt::format("N patches of {}x{}x{}, {} filters of 3x3: {}", channels,
                                                 side, side, filters_out, together),
                            .series = {"way"},
                            .x_value = "outputs",
                            .x_axis = "elements of the result"},
                           times.only("pass", {together}).records);
  for (Record record : times.only("pass", {together}).records) {
    record.time = scaled(*record.time, 1e6 / record.value("outputs").value());
    record.set_label("pass", per_million);
    times.records.push_back(record);
  }
  answer.conclusion =
      times.only("problem", {problem_of(numbers.back())}).compare("problem", {per_million}, "way");
  for (const std::string& sentence : times.compare("way", {per_million}, "problem"))
    answer.conclusion.push_back(sentence);
  return answer;
}

}  // namespace pleat::bench::ask
