// A convolution written as unfold, product and fold, whole and in pieces, beside conv2d.
#include "pleat/bench/ask/questions.h"
#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 10, side = 50, filters_out = 15, kernel = 3, margin = 1;
/// Whose columns, 0.9 MB each, stay in a cache until the product reads them.
constexpr int64_t images_a_part = 4;

Shape output_sizes(const Tensor& x, int64_t size, int64_t padding) {
  return {x.size(2) + 2 * padding - size + 1, x.size(3) + 2 * padding - size + 1};
}

void measure_batch(Compare& compare, int64_t batch) {
  const TensorOptions on{.device = compare.options.device};
  const std::string problem = fmt::format("batch {}", batch);
  manual_seed(1);
  const Tensor x = randn({batch, channels, side, side}, on).set_requires_grad();
  const Tensor filters =
      (randn({filters_out, channels * kernel * kernel}, on) * 0.1).detach().set_requires_grad();
  const auto as_kernels = [=] { return reshape(filters, {filters_out, channels, kernel, kernel}); };
  std::vector<Way> ways;
  for (const std::string& name : fast_implementations(x, as_kernels(), {.padding = margin}))
    ways.push_back({"conv2d, " + name,
                    [=] { return conv2d(x, as_kernels(), {.padding = margin, .implementation = name}); }});
  ways.push_back({"unfold, product, fold by hand", [=] { return conv_by_hand(x, filters, kernel, margin); }});
  ways.push_back({"unfold, product by hand, in parts",
                  [=] { return conv_in_parts(x, filters, kernel, margin, images_a_part); }});
  for (Way& way : ways) way.inputs = {x, filters};
  compare.measure(problem, ways, {forward, recorded, backward});

  const UnfoldOptions windows{.kernel_size = kernel, .padding = margin};
  const Tensor columns = no_grad([&] { return unfold(x, windows); }).set_requires_grad();
  const Tensor product = no_grad([&] { return matmul(filters, columns); }).set_requires_grad();
  compare.measure_pieces(problem + ", by hand",
                         {{"unfold", [=] { return unfold(x, windows); }, {x}},
                          {"product", [=] { return matmul(filters, columns); }, {filters, columns}},
                          {"fold",
                           [=] { return fold(product, output_sizes(x, kernel, margin), {.kernel_size = 1}); },
                           {product}}},
                         {forward, backward});
}

}  // namespace

Tensor conv_by_hand(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding) {
  const Tensor columns = unfold(x, {.kernel_size = size, .padding = padding});
  return fold(matmul(filters, columns), output_sizes(x, size, padding), {.kernel_size = 1});
}

Tensor conv_in_parts(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding, int64_t images) {
  const Shape sizes = output_sizes(x, size, padding);
  std::vector<Tensor> results;
  for (const Tensor& part : split(x, images)) {
    const Tensor columns = unfold(part, {.kernel_size = size, .padding = padding});
    results.push_back(reshape(matmul(filters, columns), {part.size(0), filters.size(0), sizes[0], sizes[1]}));
  }
  return cat(results);
}

void unfold_speed(Compare& compare) {
  compare.setup = {fmt::format(
      "Input [N, {}, {}, {}], {} filters of {}x{}, padding {}, float32. Backward is that of input "
      "and filters.",
      channels, side, side, filters_out, kernel, kernel, margin)};
  const std::vector<int64_t> batches =
      compare.options.quick ? std::vector<int64_t>{2, 8} : std::vector<int64_t>{2, 256, 512};
  for (const int64_t batch : batches) {
    const int64_t input = batch * channels * side * side * 4;
    compare.setup.push_back(
        fmt::format("Batch {}: the input takes {}, the column matrix {}; its gradient takes as much again.",
                    batch, text_of_bytes(input), text_of_bytes(input * kernel * kernel)));
    measure_batch(compare, batch);
  }
}

}  // namespace pleat::bench::ask
