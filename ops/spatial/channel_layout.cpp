#include "pleat/ops/spatial/channel_layout.h"

#include <span>
#include <vector>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::ops {
namespace {

/// Row-major in the order [N, spatial..., C].
bool channels_are_densest(const Tensor& x) {
  std::vector<int64_t> order{0};
  for (int64_t d = 2; d < x.rank(); ++d) order.push_back(d);
  order.push_back(1);
  return no_grad([&] { return permute(x, order).is_contiguous(); });
}

}  // namespace

ChannelView channel_view(const Tensor& x) {
  const Shape& shape = x.shape();
  ChannelView view{shape[0], shape[1], count(std::span(shape).subspan(2)), false};
  view.channels_last = view.pixels == 1 || (!x.is_contiguous() && channels_are_densest(x));
  return view;
}

Tensor channel_dense(const Tensor& x) {
  return x.is_contiguous() || channels_are_densest(x) ? x : to_format(x, MemoryFormat::contiguous);
}

Tensor laid_out_as(const Tensor& x, const Tensor& like) {
  const bool same = like.is_contiguous() ? x.is_contiguous() : channels_are_densest(x);
  if (same) return x;
  const Tensor result = empty_as(std::span(&like, 1), x.shape(), x.dtype());
  copy_into(result, x);
  return result;
}

}  // namespace pleat::ops
