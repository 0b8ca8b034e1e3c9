#include "pleat/dist/collectives.h"

#include <functional>
#include <string>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/dist/world.h"
#include "pleat/tests/relative_error.h"
#include "pleat/train/metrics.h"

using namespace pleat;
using dist::ReduceOp;
using test::relative_error;
using test::world;

namespace {

int64_t ranks() { return world().size(); }

/// A tensor of its own on each rank.
Tensor numbers_of(int64_t rank, const Shape& shape) {
  Generator generator(100 + static_cast<uint64_t>(rank));
  return randn(shape, float64, generator);
}

/// A function of all ranks' tensors, computed by the collectives and without them.
struct Case {
  std::string name;
  Shape shape;
  std::function<Tensor(const Tensor& own)> collective;
  /// What rank `rank` gets from the ranks' tensors.
  std::function<Tensor(const std::vector<Tensor>& all, int64_t rank)> plain;
};

Tensor sum_of(const std::vector<Tensor>& all) {
  Tensor sum = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) sum = sum + all[i];
  return sum;
}

std::vector<Case> differentiable() {
  const int64_t n = ranks();
  return {
      {"all_reduce",
       {2, 3},
       [](const Tensor& x) { return dist::all_reduce(x, world()); },
       [](const auto& all, int64_t) { return sum_of(all); }},
      {"all_reduce by mean",
       {2, 3},
       [](const Tensor& x) { return dist::all_reduce(x, world(), ReduceOp::mean); },
       [n](const auto& all, int64_t) { return sum_of(all) / n; }},
      {"all_gather",
       {2, 3},
       [](const Tensor& x) { return dist::all_gather(x, world()); },
       [](const auto& all, int64_t) { return cat(all); }},
      {"reduce_scatter",
       {2 * n, 3},
       [](const Tensor& x) { return dist::reduce_scatter(x, world()); },
       [](const auto& all, int64_t rank) { return narrow(sum_of(all), 0, 2 * rank, 2); }},
      {"reduce_scatter by mean",
       {2 * n, 3},
       [](const Tensor& x) { return dist::reduce_scatter(x, world(), ReduceOp::mean); },
       [n](const auto& all, int64_t rank) { return narrow(sum_of(all), 0, 2 * rank, 2) / n; }},
      {"broadcast",
       {2, 3},
       [n](const Tensor& x) { return dist::broadcast(x, world(), static_cast<int>(n - 1)); },
       [n](const auto& all, int64_t) { return all[static_cast<std::size_t>(n - 1)]; }},
  };
}

/// A loss of one rank that has second derivatives and differs between ranks.
Tensor loss_of(const Tensor& y, int64_t rank) { return sum(y * y * y) * static_cast<double>(rank + 1); }

}  // namespace

TEST_CASE("dist: ranks are numbered, and know of those on their machine", "[dist]") {
  CHECK(world().rank() >= 0);
  CHECK(world().rank() < world().size());
  CHECK(world().local_size() == world().size());  // on one machine, as tests run
  CHECK(world().local_rank() == world().rank());
  const Tensor all = dist::all_gather(tensor({world().rank()}), world());
  CHECK(all.to_vector<int>() == arange(world().size()).to_vector<int>());
}

TEST_CASE("dist: all_reduce adds, averages, and finds the ends, for every type", "[dist]") {
  const int rank = world().rank();
  for (const DType dtype : {uint8, int32, int64, bfloat16, float16, float32, float64}) {
    CAPTURE(name(dtype));
    const Tensor x = (arange(6) + rank).to(dtype);
    const auto reduced = [&](ReduceOp op) { return dist::all_reduce(x, world(), op).to_vector<double>(); };
    const auto sum = reduced(ReduceOp::sum), min = reduced(ReduceOp::min), max = reduced(ReduceOp::max);
    for (int64_t i = 0; i < 6; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(sum[at] == static_cast<double>(i * ranks() + ranks() * (ranks() - 1) / 2));
      CHECK(min[at] == static_cast<double>(i));
      CHECK(max[at] == static_cast<double>(i + ranks() - 1));
    }
    if (is_floating(dtype))
      CHECK(reduced(ReduceOp::mean)[5] == Approx(5 + static_cast<double>(ranks() - 1) / 2).epsilon(0.01));
    else
      CHECK_THROWS_AS(dist::all_reduce(x, world(), ReduceOp::mean), DTypeError);
  }
  const Tensor last = full({2}, rank == ranks() - 1, boolean);
  CHECK(dist::all_reduce(last, world(), ReduceOp::max).to_vector<bool>() == std::vector<bool>{true, true});
  CHECK(dist::all_reduce(last, world(), ReduceOp::min).to_vector<bool>() ==
        std::vector<bool>(2, ranks() == 1));
  CHECK_THROWS_AS(dist::all_reduce(last, world()), DTypeError);
}

TEST_CASE("dist: a mean of half precision does not overflow on its way", "[dist]") {
  CHECK(dist::all_reduce(full({3}, 60000, float16), world(), ReduceOp::mean).to_vector<float>()[1] ==
        Approx(60000).epsilon(0.01));
}

TEST_CASE("dist: views, empty tensors and numbers are reduced", "[dist]") {
  const Tensor whole = arange(12, 0, -1, float32);
  const Tensor columns = whole.as_strided({3, 2}, {1, 6}, 0);
  dist::all_reduce_(columns, world());
  CHECK(whole.to_vector<double>()[0] == static_cast<double>(12 * ranks()));
  CHECK(whole.to_vector<double>()[3] == 9);  // no part of it
  CHECK(dist::all_reduce(empty({0, 3}), world()).shape() == Shape{0, 3});
  CHECK(dist::all_gather(empty({2, 0}), world()).shape() == Shape{2 * ranks(), 0});
  CHECK(dist::all_reduce(scalar(1.5), world()).item() == 1.5 * static_cast<double>(ranks()));
}

TEST_CASE("dist: values and gradients to second order are those of one process", "[dist]") {
  const auto own = static_cast<std::size_t>(world().rank());
  for (const Case& c : differentiable()) {
    CAPTURE(c.name);
    // The sum of all ranks' losses, in this process alone.
    std::vector<Tensor> all;
    for (int64_t rank = 0; rank < ranks(); ++rank)
      all.push_back(numbers_of(rank, c.shape).set_requires_grad());
    Tensor total;
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      const Tensor loss = loss_of(c.plain(all, rank), rank);
      total = total.defined() ? total + loss : loss;
    }
    const Grads expected = grad({total}, all, {}, {.create_graph = true, .allow_unused = true});
    Tensor squares;
    for (const Tensor& g : expected)
      if (g.defined()) squares = squares.defined() ? squares + sum(g * g) : sum(g * g);
    const Grads second = grad({squares}, all, {}, {.allow_unused = true});
    const auto or_zero = [&](const Tensor& g) { return g.defined() ? g : zeros(c.shape, float64); };

    // This rank's part of it, by the collective.
    const Tensor x = numbers_of(world().rank(), c.shape).set_requires_grad();
    const Tensor y = c.collective(x);
    CHECK(relative_error(y, c.plain(all, world().rank())) < 1e-14);
    const Tensor dx = grad({loss_of(y, world().rank())}, {x}, {}, {.create_graph = true})[0];
    CHECK(relative_error(dx, or_zero(expected[own])) < 1e-13);
    const Tensor ddx = grad({sum(dx * dx)}, {x})[0];
    CHECK(relative_error(ddx, or_zero(second[own])) < 1e-12);
  }
}

TEST_CASE("dist: what has no gradient says so", "[dist]") {
  const Tensor x = ones({2}).set_requires_grad();
  CHECK_THROWS_AS(dist::all_reduce(x, world(), ReduceOp::max), AutogradError);
  CHECK(dist::all_reduce(x.detach(), world(), ReduceOp::max).to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("dist: broadcast gives the elements of any rank", "[dist]") {
  for (int root = 0; root < ranks(); ++root) {
    const Tensor x = full({3}, world().rank(), int64);
    dist::broadcast_(x, world(), root);
    CHECK(x.to_vector<int64_t>() == std::vector<int64_t>(3, root));
  }
  CHECK_THROWS_AS(dist::broadcast(ones({1}), world(), world().size()), IndexError);
  CHECK_THROWS_AS(dist::broadcast(ones({1}), world(), -1), IndexError);
}

TEST_CASE("dist: tensors go from rank to rank in order, whoever sends first", "[dist]") {
  if (ranks() == 1) {
    CHECK_THROWS_AS(dist::send(ones({1}), world(), 0), ValueError);
    CHECK_THROWS_AS(dist::recv(world(), 1), IndexError);
    return;
  }
  const int next = (world().rank() + 1) % world().size();
  const int before = (world().rank() + world().size() - 1) % world().size();
  // All send before any receives; the second is larger than what MPI sends at once.
  dist::send(full({2, 3}, world().rank(), float16), world(), next);
  dist::send(full({300'000}, world().rank(), int64), world(), next);
  dist::send(empty({0, 4}, float64), world(), next);
  const Tensor first = dist::recv(world(), before);
  CHECK(first.shape() == Shape{2, 3});
  CHECK(first.dtype() == float16);
  CHECK(first.to_vector<int>() == std::vector<int>(6, before));
  const Tensor second = dist::recv(world(), before);
  CHECK(second.numel() == 300'000);
  CHECK(second.to_vector<int64_t>().back() == before);
  CHECK(dist::recv(world(), before).shape() == Shape{0, 4});
}

TEST_CASE("dist: the same calls give the same bits", "[dist]") {
  const auto run = [] {
    return dist::all_reduce(numbers_of(world().rank(), {10'007}).to(float32), world()).to_vector<float>();
  };
  const std::vector<float> first = run();
  CHECK(run() == first);
  // And all ranks have the same.
  const Tensor sum = from_vector(first, first.size());
  const Tensor least = dist::all_reduce(sum, world(), ReduceOp::min);
  CHECK(least.to_vector<float>() == first);
}

TEST_CASE("dist: wrong arguments are errors before anything is sent", "[dist]") {
  CHECK_THROWS_AS(dist::all_gather(scalar(1.0), world()), ShapeError);
  if (ranks() > 1) CHECK_THROWS_AS(dist::reduce_scatter(ones({2 * ranks() + 1}), world()), ShapeError);
  CHECK_THROWS_AS(dist::init({.timeout_seconds = 0}), ValueError);
  CHECK_THROWS_AS(dist::init({.timeout_seconds = 1}), ValueError);  // not those of the first call
  if (world().transport().find("NCCL") != std::string::npos && cuda::device_count() > 1) {
    const Device other(DeviceType::cuda, 1 - world().device().index);
    CHECK_THROWS_WITH(dist::all_reduce(ones({2}, {.device = other}), world()),
                      Catch::Contains("the GPU of this rank is"));
  }
  dist::barrier(world());
}

TEST_CASE("metrics of all ranks become one", "[dist]") {
  // Rank r has r samples: the first has none, so sizes differ.
  const auto scores = [](int64_t rank) { return narrow(numbers_of(rank, {4, 3}), 0, 0, rank); };
  const auto labels = [](int64_t rank) { return arange(rank); };
  train::AUROC own, whole;
  train::ConfusionMatrix matrix(3), all(3);
  train::TopKAccuracy top(2), top_of_all(2);
  train::RegressionScore errors, errors_of_all;
  const auto add = [&](int64_t rank, train::AUROC& a, train::ConfusionMatrix& c, train::TopKAccuracy& t,
                       train::RegressionScore& r) {
    a.add(scores(rank), labels(rank));
    c.add(scores(rank), labels(rank));
    t.add(scores(rank), labels(rank));
    r.add(select(scores(rank), 1, 0), labels(rank));
  };
  const int64_t rank = world().rank();
  if (rank > 0) add(rank, own, matrix, top, errors);
  for (int64_t r = 1; r < ranks(); ++r) add(r, whole, all, top_of_all, errors_of_all);
  CHECK(dist::merge_metric(matrix, world()).counts() == all.counts());
  const train::AUROC merged = dist::merge_metric(own, world());
  CHECK(merged.samples() == whole.samples());
  if (ranks() > 2) CHECK(merged.value() == whole.value());
  CHECK(dist::merge_metric(top, world()).samples() == top_of_all.samples());
  const train::RegressionScore found = dist::merge_metric(errors, world());
  CHECK(found.elements() == errors_of_all.elements());
  if (ranks() > 2) CHECK(found.r2() == Approx(errors_of_all.r2()));
  CHECK(matrix.samples() == rank);
}
