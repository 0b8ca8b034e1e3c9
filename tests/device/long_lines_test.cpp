// Reductions, scans, softmax and norms of long lines on the other device.

#include <functional>

#include "pleat/core/tensor/create.h"
#include "pleat/nn/loss.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/dropout.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"

using namespace pleat;
using namespace pleat::test;

TEST_CASE("device: reductions of many elements", "[device]") {
  agrees_in_value({integers({70, 80}, -9, 9)}, [](const Tensors& t) { return sum(t[0], {0}); });
  agrees_in_value({uniform({300, 700}, 0, 0.1)}, [](const Tensors& t) {
    return Tensors{sum(t[0]),      sum(t[0], {0}), mean(t[0], {1}),
                   max(t[0], {0}), norm(t[0]),     logsumexp(t[0], {1})};
  });
}

// By vectors of eight of half types, of four and element by element; from addresses that are no multiples;
// of dimensions that cannot be joined, which end within a round of a thread or are of many rounds.
TEST_CASE("device: reductions of what lies in vectors and of what does not", "[device]") {
  const auto reductions_agree = [](const Tensor& x, const Dims& dims,
                                   const std::function<Tensor(const Tensor&)>& view) {
    CAPTURE(x.describe(), dims.size());
    agrees_in_value({x}, [&](const Tensors& all) {
      const Tensor t = view(all[0]);
      return Tensors{sum(t, dims), mean(t, dims), max(t, dims), var(t, dims), norm(t, dims)};
    });
  };
  const auto as_it_is = [](const Tensor& x) { return x; };
  for (const int64_t n : {8, 12, 7, 32, 600}) {
    reductions_agree(normal({3, n}), {1}, as_it_is);
    reductions_agree(normal({40 * n}), {0}, as_it_is);
    for (const int64_t first : {8, 4, 1})
      reductions_agree(normal({3, n + 16}), {1}, [=](const Tensor& x) { return narrow(x, 1, first, n); });
    reductions_agree(normal({4, 6, 5, n}), {1, 3}, as_it_is);
    reductions_agree(normal({9, 6, 5, n}), {0, 2}, as_it_is);
    reductions_agree(normal({3, 4, 6, 5, n}), {0, 2, 4}, as_it_is);
    reductions_agree(normal({3, 4, 6, 5, n}), {1, 3}, as_it_is);
  }
  agrees({normal({37, 41, 3})}, [](const Tensors& t) { return argmax(t[0]); }, {.differentiable = false});
}

TEST_CASE("device: scans of long lines", "[device]") {
  agrees_in_value({uniform({3, 5000}, 0, 1)}, [](const Tensors& t) {
    return Tensors{cumsum(t[0], 1), cumsum(t[0], 1, true), cumprod(t[0] / 8 + 0.9375, 1)};
  });
}

// Lines that one round of a block's threads does not hold; few long ones are cut into parts, which a second
// launch merges.
TEST_CASE("device: softmax, reductions and norms of long lines", "[device]") {
  for (const int64_t n : {700, 1025, 4099})
    for (const bool rows : {true, false}) {
      CAPTURE(n, rows);
      const int64_t dim = rows ? 1 : 0;
      const Tensor x = rows ? normal({2, n}) : normal({n, 3});
      const AgreeOptions once{.differences = false};
      const auto along = [&](const std::function<Outputs(const Tensor&)>& f) {
        agrees(
            {x}, [&](const Tensors& t) { return f(t[0]); }, once);
      };
      along([&](const Tensor& t) { return softmax(t, {dim}); });
      along([&](const Tensor& t) { return log_softmax(t, {dim}); });
      along([&](const Tensor& t) { return logsumexp(t, {dim}); });
      along([&](const Tensor& t) { return mean(t, {dim}); });
      along([&](const Tensor& t) { return var(t, {dim}); });
      along([&](const Tensor& t) { return max(t, {dim}); });
      along([&](const Tensor& t) { return norm(t, {dim}); });
      along([&](const Tensor& t) { return cumsum(t * t, dim); });
      along([&](const Tensor& t) { return sum(t * t, {dim}); });
      agrees({x}, [&](const Tensors& t) { return argmax(t[0], dim); }, {.differentiable = false});
      if (!rows) {
        agrees(
            {x, normal({3}, 2), normal({3}, 3)},
            [](const Tensors& t) {
              return batch_norm(t[0], t[1], t[2], {}, {}, {.training = true, .implementation = "native"});
            },
            once);
        continue;
      }
      agrees(
          {x, normal({n}, 2), normal({n}, 3)},
          [&](const Tensors& t) { return layer_norm(t[0], t[1], t[2], {.normalized_shape = {n}}); }, once);
      agrees(
          {normal({2, 4, n}), normal({4}, 2), normal({4}, 3)},
          [](const Tensors& t) { return group_norm(t[0], t[1], t[2], {.num_groups = 2}); }, once);
      agrees(
          {normal({2, 3, n}), normal({3}, 2), normal({3}, 3)},
          [](const Tensors& t) {
            return batch_norm(t[0], t[1], t[2], {}, {}, {.training = true, .implementation = "native"});
          },
          once);
    }
}

// Lines in the registers of one thread, of a part of a warp, of several warps, and longer ones; by vectors,
// from addresses and of lengths that have none, beside each other, and alone.
TEST_CASE("device: softmax and cross entropy of lines of any length", "[device]") {
  const auto lines_agree = [](const Tensor& x, int64_t dim,
                              const std::function<Tensor(const Tensor&)>& view) {
    Shape shape = view(x).shape();
    const int64_t classes = shape[static_cast<std::size_t>(dim)];
    shape.erase(shape.begin() + dim);
    const Tensor target = integers(shape, 0, classes).to(int64);
    const auto along = [&](const std::function<Outputs(const Tensor&)>& f) {
      agrees({x}, [&](const Tensors& t) { return f(view(t[0])); }, {.differences = false});
    };
    along([&](const Tensor& t) { return softmax(t, {dim}); });
    along([&](const Tensor& t) { return log_softmax(t, {dim}); });
    along([&](const Tensor& t) { return cross_entropy(t, target.to(t.device())); });
    along([&](const Tensor& t) {
      return cross_entropy(t, target.to(t.device()),
                           {.ignore_index = 1, .label_smoothing = 0.25, .reduction = Reduction::none});
    });
  };
  const auto as_it_is = [](const Tensor& x) { return x; };
  for (const int64_t n : {2, 5, 10, 16, 17, 32, 33, 63, 64, 68, 132, 1000, 2052, 4099, 8192, 8196, 8201}) {
    CAPTURE(n);
    lines_agree(normal({n < 100 ? 37 : 3, n}), 1, as_it_is);
    if (n > 100) continue;
    lines_agree(normal({37 * n + 1}), 1, [n](const Tensor& x) {
      return reshape(narrow(x, 0, 1, 37 * n), {37, n});
    });
    lines_agree(normal({2, n, 5, 7}), 1, as_it_is);
  }
  lines_agree(normal({2, 300, 5, 7}), 1, as_it_is);
  for (const int64_t n : {10, 12}) lines_agree(normal({300, n}), 1, as_it_is);  // of two blocks
}

// Several elements of a line are its largest.
TEST_CASE("device: gradients of extremes of lines of any length", "[device]") {
  const AgreeOptions once{.differences = false};
  for (const int64_t n : {1, 10, 33, 1000, 9001}) {
    CAPTURE(n);
    agrees(
        {integers({5, n}, 0, 3)},
        [](const Tensors& t) {
          return Tensors{max(t[0], {1}), min(t[0], {0})};
        },
        once);
  }
  const Tensor images = integers({2, 3, 5, 7}, 0, 3);
  for (int64_t dim = 0; dim < 4; ++dim)
    for (const bool keepdim : {false, true})
      agrees(
          {images}, [&](const Tensors& t) { return max(t[0], {dim}, keepdim) * max(t[0], {dim}, keepdim); },
          once);
  agrees(
      {integers({2, 0, 3}, 0, 3)}, [](const Tensors& t) { return max(t[0], {2}); }, once);
}

// By vectors and without, of one block and of several, of tensors that lie differently.
TEST_CASE("device: sums and means of losses of pairs", "[device]") {
  const auto losses_agree = [](const Tensor& x, const Tensor& t,
                               const std::function<Tensor(const Tensor&)>& view) {
    agrees({x, t},
           [&](const Tensors& all) {
             const Tensor a = all[0], b = view(all[1]), p = sigmoid(b);
             return Tensors{mse_loss(a, b),
                            l1_loss(a, b, {Reduction::sum}),
                            smooth_l1_loss(a, b, {.reduction = Reduction::batch_mean}),
                            huber_loss(a, b),
                            bce_with_logits(a, p),
                            bce_with_logits(a, p, {.pos_weight = full_like(p, 2)}),
                            binary_cross_entropy(sigmoid(a), p, {.reduction = Reduction::batch_mean}),
                            kl_div(a, p),
                            kl_div(a, p * where(b < 0, 0, 1), {.reduction = Reduction::sum}),
                            kl_div(a, b, {.log_target = true, .reduction = Reduction::batch_mean}),
                            soft_margin_loss(a, b),
                            hinge_embedding_loss(a, b),
                            sigmoid_focal_loss(a, p, {.reduction = Reduction::mean})};
           },
           {.differences = false});
  };
  const auto as_it_is = [](const Tensor& x) { return x; };
  for (const int64_t n : {1, 3, 4, 1003, 30'000}) {
    CAPTURE(n);
    losses_agree(normal({n}, 1), normal({n}, 2), as_it_is);
  }
  losses_agree(normal({7, 12}, 1), normal({12, 7}, 2), [](const Tensor& x) { return transpose(x, 0, 1); });
  losses_agree(normal({84}, 1), normal({85}, 2), [](const Tensor& x) { return narrow(x, 0, 1, 84); });
}

// By vectors and without.
TEST_CASE("device: dropout draws the same mask", "[device]") {
  for (const int64_t n : {1, 3, 4, 37, 1024, 1030})
    for (const int64_t start : {0, 1, 4}) {
      CAPTURE(n, start);
      agrees({normal({n + start})},
             [&](const Tensors& t) {
               Generator generator(5);
               return dropout(narrow(t[0], 0, start, n), 0.3, true, generator);
             },
             {.differences = false});
    }
}

// Rows in registers and longer ones, with parameters that have vectors and that have none.
TEST_CASE("device: layer norm and RMS norm of rows of any length", "[device]") {
  for (const int64_t n : {1, 5, 33, 64, 100, 1000, 8192, 8201}) {
    CAPTURE(n);
    agrees({normal({n < 100 ? 37 : 3, n}), normal({n + 1}, 2), normal({2 * n}, 3)},
           [&](const Tensors& t) {
             const Tensor weight = narrow(t[1], 0, 1, n), bias = select(reshape(t[2], {n, 2}), 1, 0);
             return Tensors{layer_norm(t[0], weight, bias, {.normalized_shape = {n}}),
                            layer_norm(t[0], {}, {}, {.normalized_shape = {n}})};
           },
           {.differences = false});
    agrees({normal({n < 100 ? 37 : 3, n}), normal({n + 1}, 2)},
           [&](const Tensors& t) {
             const Tensor weight = narrow(t[1], 0, 1, n);
             return Tensors{rms_norm(t[0], weight, {.normalized_shape = {n}, .eps = 1}),
                            rms_norm(t[0], {}, {.normalized_shape = {n}, .eps = 1})};
           },
           {.differences = false});
  }
  agrees({normal({5, 96}), normal({96}, 2), normal({96}, 3)},
         [](const Tensors& t) { return group_norm(t[0], t[1], t[2], {.num_groups = 3}); },
         {.differences = false});
}

TEST_CASE("device: group norm of many images and channels, whose states several lanes merge", "[device]") {
  for (const Shape& shape : {Shape{12, 12, 5, 5}, Shape{40, 24, 3, 2}})
    for (const int64_t groups : {1, 3}) {
      CAPTURE(shape, groups);
      agrees({normal(shape), normal({shape[1]}, 2), normal({shape[1]}, 3)},
             [groups](const Tensors& t) { return group_norm(t[0], t[1], t[2], {.num_groups = groups}); },
             {.differences = false});
    }
}

TEST_CASE("device: scans of warps, from either end, of sizes beside their vectors", "[device]") {
  for (const int64_t n : {33, 100, 127, 128, 1000, 2049, 4100}) {
    CAPTURE(n);
    agrees_in_value({uniform({5, n}, 0, 1)}, [](const Tensors& t) {
      return Tensors{cumsum(t[0], 1), cumsum(t[0], 1, true), linear_scan(t[0], t[0] * 2, 1, false),
                     linear_scan(t[0], t[0] * 2, 1, true)};
    });
  }
}
