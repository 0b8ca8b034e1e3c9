#include "pleat/autograd/leaf_gradients.h"

#include <string>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/checkpoint.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/gradient_watcher.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/profile/profiler.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

using Numbers = std::vector<float>;

Tensor leaf(const Numbers& x) { return from_vector(x, x.size()).set_requires_grad(); }

/// Hooks a tensor: notes the gradients, and gives ten times as much.
std::vector<Numbers>& hook_tenfold(const Tensor& x, std::vector<Numbers>& seen) {
  x.register_hook([&seen](const Tensor& g) {
    seen.push_back(g.to_vector());
    return g * 10;
  });
  return seen;
}

struct Program {
  const char* name;
  std::function<Tensor(const Tensor&)> loss;
};

/// Each uses w = [1, 2] several times.
const std::vector<Program>& programs() {
  static const std::vector<Program> all{
      {"one node, twice", [](const Tensor& w) { return sum(w * w); }},
      {"two nodes", [](const Tensor& w) { return sum(exp(w)) + sum(w * 3); }},
      {"views", [](const Tensor& w) { return w[0] * w[1] + sum(w); }},
      {"recurrent",
       [](const Tensor& w) {
         Tensor h = ones({2});
         for (int t = 0; t < 5; ++t) h = tanh(h * w);
         return sum(h);
       }},
      {"tied", [](const Tensor& w) {
         const Tensor table = reshape(w, {2, 1});
         return sum(matmul(embedding(tensor({1, 0, 1}), table), transpose(table, 0, 1)));
       }}};
  return all;
}

Numbers times(double factor, const Tensor& x) { return (x.detach() * factor).to_vector(); }

}  // namespace

TEST_CASE("a leaf's hook is called once in a backward, with the whole gradient", "[autograd]") {
  for (const auto& [name, loss] : programs())
    for (const bool create_graph : {false, true}) {
      CAPTURE(name, create_graph);
      const Tensor plain = leaf({1, 2}), w = leaf({1, 2});
      loss(plain).backward({.create_graph = create_graph});
      std::vector<Numbers> seen;
      hook_tenfold(w, seen);
      const Tensor y = loss(w);
      y.backward({.retain_graph = true, .create_graph = create_graph});
      REQUIRE(seen == std::vector<Numbers>{plain.grad().to_vector()});
      CHECK(w.grad().to_vector() == times(10, plain.grad()));
      // The second walk through a retained graph adds as much.
      y.backward({.retain_graph = true, .create_graph = create_graph});
      CHECK(seen.size() == 2);
      CHECK(w.grad().to_vector() == times(20, plain.grad()));
      const Tensor given = grad({y}, {w, w}, {}, {.create_graph = create_graph})[1];
      CHECK(seen == std::vector<Numbers>(3, plain.grad().to_vector()));
      CHECK(given.to_vector() == times(10, plain.grad()));
      CHECK(w.grad().to_vector() == times(20, plain.grad()));
    }
}

TEST_CASE("the hook of a leaf that is itself an output sees the sum", "[autograd]") {
  const Tensor w = scalar(3.0).set_requires_grad();
  std::vector<Numbers> seen;
  hook_tenfold(w, seen);
  backward({w, w * w, w});
  CHECK(seen == std::vector<Numbers>{{8}});
  CHECK(w.grad().item() == 80);
}

TEST_CASE("a tensor that is no leaf has its hook called once, too", "[autograd]") {
  const Tensor w = leaf({1, 2});
  const Tensor h = w * 1;
  std::vector<Numbers> seen;
  hook_tenfold(h, seen);
  (sum(h * h) + sum(h)).backward();
  CHECK(seen == std::vector<Numbers>{{3, 5}});
  CHECK(w.grad().to_vector() == Numbers{30, 50});
}

TEST_CASE("hooks are called in their order, each with what the one before it returned", "[autograd]") {
  for (const bool is_leaf : {true, false}) {
    const Tensor w = leaf({1, 2});
    const Tensor x = is_leaf ? w : w * 1;
    std::string order;
    x.register_hook([&](const Tensor& g) {
      order += 'a';
      return g + 1;
    });
    x.register_hook([&](const Tensor&) {
      order += 'b';
      return Tensor();
    });
    x.register_hook([&](const Tensor& g) {
      order += 'c';
      return g * 2;
    });
    sum(x * x).backward();
    CHECK(order == "abc");
    CHECK(w.grad().to_vector() == Numbers{6, 10});
  }
}

TEST_CASE("what a hook returns is added to the gradient from before", "[autograd]") {
  const Tensor w = leaf({1, 2});
  sum(w).backward();
  w.register_hook([](const Tensor& g) { return g * 10; });
  sum(w * w).backward();
  CHECK(w.grad().to_vector() == Numbers{21, 41});
}

TEST_CASE("a hook under create_graph is a part of the graph", "[autograd]") {
  const Tensor w = leaf({1, 2});
  w.register_hook([](const Tensor& g) { return g * g; });
  const Tensor g = grad({sum(w * w * w)}, {w}, {}, {.create_graph = true})[0];  // (3 w^2)^2
  CHECK(g.to_vector() == Numbers{9, 144});
  // The hook sees this gradient, too: (36 w^3)^2.
  CHECK(grad({sum(g)}, {w})[0].to_vector() == Numbers{36 * 36, 288 * 288});
}

TEST_CASE("hooks of what a checkpoint uses see the whole gradient", "[autograd]") {
  const auto block = [](const Tensor& w) { return [w](const Tensor& x) { return x * w * w; }; };
  const auto loss = [&](const Tensor& x, const Tensor& w, bool checkpointed) {
    Tensor y = x * w;
    for (int i = 0; i < 3; ++i) y = checkpointed ? checkpoint(block(w), y) : block(w)(y);
    return sum(y * w);
  };
  for (const bool create_graph : {false, true}) {
    CAPTURE(create_graph);
    const Tensor plain_x = leaf({1, 3}), plain = leaf({1, 2});
    loss(plain_x, plain, false).backward();
    const Tensor x = leaf({1, 3}), w = leaf({1, 2});
    std::vector<Numbers> of_x, of_w;
    hook_tenfold(x, of_x);
    hook_tenfold(w, of_w);
    const Tensor y = loss(x, w, true);
    y.backward({.retain_graph = true, .create_graph = create_graph});
    CHECK(of_x == std::vector<Numbers>{plain_x.grad().to_vector()});
    CHECK(of_w == std::vector<Numbers>{plain.grad().to_vector()});
    CHECK(w.grad().to_vector() == times(10, plain.grad()));
    const Tensor given = grad({y}, {w}, {}, {.create_graph = create_graph})[0];
    CHECK(of_w.size() == 2);
    CHECK(given.to_vector() == times(10, plain.grad()));
    CHECK(w.grad().to_vector() == times(10, plain.grad()));
  }
}

TEST_CASE("a hook that a checkpoint's function registers is called once", "[autograd]") {
  const Tensor w = leaf({1, 2});
  std::vector<Numbers> seen;
  const Tensor y = checkpoint(
      [&](const Tensor& x) {
        const Tensor h = x * w;
        hook_tenfold(h, seen);
        return h * h;
      },
      ones({2}));
  sum(y).backward();
  CHECK(seen == std::vector<Numbers>{{2, 4}});
  CHECK(w.grad().to_vector() == Numbers{20, 40});
}

TEST_CASE("backward can be limited to some inputs", "[autograd]") {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4}), c = leaf({5, 6});
  std::vector<Numbers> seen;
  hook_tenfold(a, seen);
  const Tensor y = sum(a * b * a);
  y.backward({.retain_graph = true, .inputs = {a}});
  CHECK(a.grad().to_vector() == Numbers{60, 160});
  CHECK(seen.size() == 1);
  CHECK_FALSE(b.grad().defined());
  CHECK_THROWS_WITH(y.backward({.inputs = {b, c}}), Contains("do not depend on one of the inputs"));
  CHECK_FALSE(b.grad().defined());
  y.backward({.allow_unused = true, .inputs = {b, c}});
  CHECK(b.grad().to_vector() == Numbers{1, 4});
  CHECK_FALSE(c.grad().defined());
  CHECK_THROWS_WITH(sum(a * b).backward({.inputs = {a * 1}}), Contains("inputs are leaves"));
  CHECK_THROWS_AS(grad({sum(a)}, {a}, {}, {.inputs = {a}}), ValueError);
  const Tensor d = leaf({1, 2});
  (d * d).backward(tensor({1.0f, 2.0f}), {.retain_graph = true});
  CHECK(d.grad().to_vector() == Numbers{2, 8});
}

namespace {

/// What a watcher is told: "begin 0 1, complete 0, ...".
class Log : public autograd::GradientWatcher {
 public:
  void begin(const std::vector<std::size_t>& reached, bool others_may_come) override {
    text += "begin";
    for (const std::size_t i : reached) text += " " + std::to_string(i);
    text += others_may_come ? " and others; " : "; ";
  }
  void complete(std::size_t i) override {
    text += "complete " + std::to_string(i) + "; ";
    if (at_complete) at_complete(i);
  }
  void reached_inside(std::size_t i) override { text += "inside " + std::to_string(i) + "; "; }
  void end() override { text += "end"; }

  std::string text;
  std::function<void(std::size_t)> at_complete;
};

}  // namespace

TEST_CASE("a watcher is told of a gradient when hooks have seen it and all has come", "[autograd]") {
  for (const bool checkpointed : {false, true}) {
    CAPTURE(checkpointed);
    const Tensor a = leaf({1, 2}), b = leaf({3, 4});
    const auto log = std::make_shared<Log>();
    autograd::watch_gradient(a, log, 0);
    autograd::watch_gradient(b, log, 1);
    a.register_hook([](const Tensor& g) { return g * 10; });
    std::vector<Numbers> completed(2);
    log->at_complete = [&](std::size_t i) { completed[i] = (i == 0 ? a : b).grad().to_vector(); };
    const auto f = [&](const Tensor& x) { return x * a * b; };
    const Tensor y = checkpointed ? checkpoint(f, a * 2) : f(a * 2);  // 2 a^2 b
    (sum(y * a) + sum(a)).backward();                                 // 2 a^3 b + a
    CHECK(completed == std::vector<Numbers>{{190, 970}, {2, 16}});
    CHECK(log->text == (checkpointed ? "begin 0 and others; inside 1; complete 1; complete 0; end"
                                     : "begin 0 1; complete 1; complete 0; end"));
  }
}

TEST_CASE("gradients of what was read in parts are those of reading it whole", "[autograd]") {
  const Tensor index = tensor({2, 0, 2});
  // Each reads some elements again, beside what shares its gradient with another tensor.
  const auto loss = [&](const Tensor& h, const Tensor& k, bool whole_first) {
    const Tensor weights = reshape(arange(12, {.dtype = float64}), {3, 4});
    const auto parts = [&] {
      Tensor y = sum(square(select(h, 0, 1)));
      for (int i = 0; i < 3; ++i) y = y + sum(select(h, 0, i) * select(h, 0, 2 - i));
      y = y + sum(square(narrow(h, 1, 1, 2))) + sum(slice(h, 1, 0, 4, 2)) + sum(diagonal(h) * 3);
      y = y + sum(square(unfold_dimension(h, 1, 3, 1))) + sum(square(index_select(h, 0, index)));
      return y + sum(square(gather(h, 1, expand(reshape(index, {3, 1}), {3, 3})))) +
             sum(square(embedding(index, h)));
    };
    const auto whole = [&] { return sum((h + k) * weights); };
    return whole_first ? whole() + parts() : parts() + whole();
  };
  const auto gradients = [&](bool whole_first, bool is_leaf, bool create_graph) {
    manual_seed(3);
    const Tensor x = randn({3, 4}, {.dtype = float64}), z = randn({3, 4}, {.dtype = float64});
    const Tensor a = x.set_requires_grad(), b = z.set_requires_grad();
    const Tensor y = is_leaf ? loss(a, b, whole_first) : loss(a * 1, b * 1, whole_first);
    y.backward({.retain_graph = true, .create_graph = create_graph});
    const Tensor first = clone(a.grad().detach());
    y.backward({.retain_graph = true, .create_graph = create_graph});
    CHECK(max(abs(a.grad() - 2 * first)).item() < 1e-12);
    CHECK(max(abs(grad({y}, {a})[0] - first)).item() < 1e-12);
    return std::vector<Tensor>{first, clone(b.grad().detach())};
  };
  const std::vector<Tensor> expected = gradients(true, false, true);
  for (const bool whole_first : {false, true})
    for (const bool is_leaf : {false, true}) {
      CAPTURE(whole_first, is_leaf);
      const std::vector<Tensor> got = gradients(whole_first, is_leaf, false);
      for (int i = 0; i < 2; ++i) CHECK(max(abs(got[i] - expected[i])).item() < 1e-12);
    }
}

TEST_CASE("a loop over the parts of a tensor computes its gradient in one", "[autograd][cpu]") {
  const Tensor x = ones({200, 1000}).set_requires_grad();
  std::vector<Tensor> rows;
  for (int i = 0; i < 200; ++i) rows.push_back(select(x, 0, i) * 2);
  const Tensor y = sum(stack(rows, 0));
  profile::Profiler profiler({.record_shapes = true});
  y.backward();
  profiler.stop();
  int64_t fills = 0;  // y's own gradient, and zeros for the first part
  for (const auto& event : profiler.profile().events) fills += event.name == "fill" ? 1 : 0;
  CHECK(fills == 2);
  CHECK(x.grad().to_vector() == std::vector<float>(200 * 1000, 2));
}
