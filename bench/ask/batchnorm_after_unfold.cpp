// A convolution replaced by unfold and a product, and the batch norm behind it several times slower: the
// numbers are the same, but not their order in memory.
#include "pleat/bench/ask/questions.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 3, filters = 16, side = 32;

/// The convolution of the question, and the batch norm behind it.
struct Layer {
  Tensor x, w, scale, shift, mean, variance;

  Layer(int64_t batch, Device device) {
    const TensorOptions on{.device = device};
    manual_seed(1);
    x = randn({batch, channels, side, side}, on);
    w = randn({filters, channels, 3, 3}, on) * 0.2;
    scale = ones({filters}, on).set_requires_grad();
    shift = zeros({filters}, on).set_requires_grad();
    mean = zeros({filters}, on);
    variance = ones({filters}, on);
  }

  Tensor norm(const Tensor& y, bool training) const {
    return batch_norm(y, scale, shift, mean, variance, {.training = training});
  }

  /// The ways to convolve; their results differ in nothing but the memory format, which stands in brackets.
  std::vector<Way> convolutions() const {
    std::vector<Way> ways;
    ConvOptions options;
    for (const char* asked_for : {"", ", asked for contiguous"}) {
      for (const std::string& name : fast_implementations(x, w, options)) {
        options.implementation = name;
        ways.push_back({name + asked_for, [this, options] { return conv2d(x, w, options); }});
      }
      options.format = MemoryFormat::contiguous;
    }
    ways.push_back({"by hand: filters times columns", [this] { return conv_by_product(x, w, 0, false); }});
    ways.push_back({"by hand: windows times filters", [this] { return conv_by_product(x, w, 0, true); }});
    for (Way& way : ways) way.name += fmt::format(" ({})", name(no_grad(way.compute).memory_format()));
    return ways;
  }
};

}  // namespace

Tensor conv_by_product(const Tensor& x, const Tensor& w, int64_t padding, bool windows_first) {
  const Tensor columns = unfold(x, {.kernel_size = {w.size(2), w.size(3)}, .padding = padding});
  const Tensor rows = flatten(w, 1);
  const Tensor product = windows_first
                             ? transpose(matmul(transpose(columns, 1, 2), transpose(rows, 0, 1)), 1, 2)
                             : matmul(rows, columns);  // [N, K, L]
  return reshape(product, {x.size(0), w.size(0), x.size(2) + 2 * padding - w.size(2) + 1,
                           x.size(3) + 2 * padding - w.size(3) + 1});
}

void batchnorm_after_unfold(Compare& compare) {
  const bool on_gpu = compare.options.device.is_cuda();
  compare.setup = {
      fmt::format("Conv2d {} -> {}, 3x3, padding 0, no bias; BatchNorm2d {}; input [N, {}, {}, {}], float32. "
                  "Batch norm is timed on the convolution's result in the format that it has, which stands "
                  "in brackets: alone, where a cache may still hold its input, and together with it.",
                  channels, filters, filters, channels, side, side)};
  // That of the question, and one whose result no cache holds.
  const std::vector<int64_t> batches =
      compare.options.quick ? std::vector<int64_t>{8, 32} : std::vector<int64_t>{128, on_gpu ? 8192 : 2048};
  for (const int64_t batch : batches) {
    const Layer layer(batch, compare.options.device);
    const std::string problem = fmt::format("batch {}, ", batch);
    const std::vector<Way> convolutions = layer.convolutions();
    std::vector<Way> evaluation, training, both;
    for (const auto& [name, convolve, inputs, tuned] : convolutions) {
      const Tensor y = no_grad(convolve).set_requires_grad();
      evaluation.push_back({name, [=, &layer] { return layer.norm(y, false); }});
      training.push_back({name, [=, &layer] { return layer.norm(y, true); }, {y, layer.scale, layer.shift}});
      both.push_back({name, [convolve = convolve, &layer] { return layer.norm(convolve(), false); }});
    }
    compare.measure(problem + "convolution", convolutions, {forward});
    compare.measure(problem + "batch norm in evaluation", evaluation, {forward});
    compare.measure(problem + "batch norm in training", training, {forward, backward});
    compare.measure(problem + "convolution and batch norm in evaluation", both, {forward});
  }
}

}  // namespace pleat::bench::ask
