// The way back from max pools.

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/pool/pool.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

/// What max_pool with windows of 2 leaves of an image. Its indices are places in planes of the spatial sizes
/// twice as large, plus one.
void add_unpool(std::vector<OpCase>& cases, int64_t dims) {
  const std::string name = "max_unpool" + std::to_string(dims) + "d";
  const std::vector<Shape> pooled_shapes{{2, 3, 4}, {2, 2, 3, 2}, {1, 2, 2, 3, 2}};
  const Shape shape = pooled_shapes[static_cast<std::size_t>(dims - 1)];
  Index sizes(shape.begin() + 2, shape.end());
  for (int64_t& size : sizes) size = 2 * size + 1;
  Shape whole{shape[0], shape[1]};
  whole.insert(whole.end(), sizes.begin(), sizes.end());
  const Tensor indices = max_pool_with_indices(normal(whole, 5), {.kernel_size = 2}).indices;
  const MaxUnpoolOptions options{.kernel_size = 2, .output_size = sizes};
  const auto call = [=](T x) {
    return dims == 1   ? max_unpool1d(x[0], x[1], options)
           : dims == 2 ? max_unpool2d(x[0], x[1], options)
                       : max_unpool3d(x[0], x[1], options);
  };
  const auto reference = [=](const Arrays& x) {
    Array y = computed(whole, [](const Index&) { return 0.0; });
    (void)computed(shape, [&](const Index& at) {
      auto place = static_cast<int64_t>(x[1](at));
      Index to = at;
      for (std::size_t d = to.size(); d-- > 2;) {
        to[d] = place % whole[d];
        place /= whole[d];
      }
      y(to) = x[0](at);
      return 0.0;
    });
    return Arrays{y};
  };
  cases.push_back(
      {.name = name,
       .inputs = {normal(shape), indices},
       .call = call,
       .reference = reference,
       .refused = {{{normal(shape), integers(shape, 0, 9).to(float64)}, call, name + ": indices must"},
                   {{normal(shape), integers(shape, 1000, 1001)},
                    call,
                    name + ": index 1000 at [0, 0, 0] is outside [0, "},
                   {{normal(shape), integers(shape, -1, 0)}, call, name + ": index -1 at [0, 0, 0]"},
                   {{normal(shape), integers(whole, 0, 3)}, call, name + ": the indices must be"},
                   {{normal({3}), integers({3}, 0, 3)}, call, name + ": input and indices must be"}}});
  if (dims != 2) return;
  cases.push_back({.name = "max_unpool",
                   .inputs = {normal(shape), indices},
                   .call = [=](T x) { return max_unpool(x[0], x[1], options); },
                   .reference = reference,
                   .refused = {{{normal(shape), indices},
                                [=](T x) {
                                  return max_unpool(x[0], x[1], {.kernel_size = 2, .output_size = {9, 5}});
                                },
                                "max_unpool: output_size must be within less than a stride of 2, which is 6"},
                               {{normal(shape), indices},
                                [=](T x) { return max_unpool(x[0], x[1], {.kernel_size = 2, .padding = 2}); },
                                "max_unpool: padding must be from 0 to half of kernel_size, got 2 and 2"}}});
}

}  // namespace

const std::vector<OpCase>& unpool_ops() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all;
    for (const int64_t dims : {1, 2, 3}) add_unpool(all, dims);
    return all;
  }();
  return cases;
}

}  // namespace pleat::test
