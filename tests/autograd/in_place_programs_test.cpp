#include <cstdlib>
#include <random>
#include <string>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/copy.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

/// Programs of views, writes and reads drawn at random, run twice: with in-place functions, and without any,
/// where a base is a value that each write replaces and a view is a list of places in it. Values, gradients
/// and gradients of gradients must be equal. PLEAT_PROGRAMS=100000 in the environment runs so many.

using namespace pleat;

namespace {

int draw(std::mt19937& random, int below) {
  return static_cast<int>(random() % static_cast<uint32_t>(below));
}

/// One view of a shape, drawn: the same for tensors of elements and for tensors of places.
struct ViewStep {
  int kind = 0;
  int64_t a = 0, b = 0, c = 0;
  Shape shape = {};

  static ViewStep drawn(std::mt19937& random, const Shape& of) {
    const auto rank = static_cast<int>(of.size());
    ViewStep step;
    step.kind = draw(random, 9);
    if (rank == 0) {
      step.kind = 6;
      return step;
    }
    step.a = draw(random, rank);
    const int64_t size = of[static_cast<std::size_t>(step.a)];
    switch (step.kind) {
      case 0:
        step.b = draw(random, static_cast<int>(size));
        break;
      case 1:
        step.b = draw(random, static_cast<int>(size));
        step.c = 1 + draw(random, static_cast<int>(size - step.b));
        break;
      case 2:
        step.b = draw(random, static_cast<int>(size));
        step.c = 1 + draw(random, 2);
        break;
      case 3:
        step.b = draw(random, rank);
        break;
      case 4:  // for numbers of elements that are divisible, two rows
        step.shape = count(of) % 2 == 0 ? Shape{2, count(of) / 2} : Shape{count(of)};
        break;
      case 5:
        if (rank < 2) step.kind = 6;
        break;
      case 7:
        step.shape = of;
        step.shape.insert(step.shape.begin(), 2);
        break;
      case 8:
        step.b = 1 + draw(random, static_cast<int>(size));
        break;
      default:
        break;
    }
    return step;
  }

  Tensor operator()(const Tensor& x) const {
    switch (kind) {
      case 0:
        return select(x, a, b);
      case 1:
        return narrow(x, a, b, c);
      case 2:
        return slice(x, a, b, x.size(a), c);
      case 3:
        return transpose(x, a, b);
      case 4:
        return reshape(x, shape);
      case 5:
        return diagonal(x);
      case 7:
        return expand(x, shape);
      case 8:
        return unfold_dimension(x, a, b, 1);
      default:
        return unsqueeze(x, 0);
    }
  }
};

/// The same tensor in both worlds: `real`, and without in-place functions `places` in the value of base
/// number `base`.
struct Pair {
  Tensor real;
  std::size_t base;
  Tensor places;  ///< int64, of real's shape
};

class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {
    Generator numbers(seed);
    for (int i = 0; i < 2; ++i) {
      leaves_.push_back(empty({3, 4}, {.dtype = float64}));
      fill_uniform_(leaves_.back(), 0.5, 1.5, numbers);
      leaves_.back().set_requires_grad();
    }
    for (int i = 0; i < 2; ++i) add_base(draw(random_, 2) == 0);
  }

  void step() {
    switch (draw(random_, 8)) {
      case 0:
        return add_base(draw(random_, 3) == 0);
      case 1:
      case 2:
      case 3:
        return add_view();
      case 4:
        return read();
      default:
        return write();
    }
  }

  const std::vector<Tensor>& leaves() const { return leaves_; }

  /// One number of all that was read and of all that is alive, in either world.
  Tensor loss(bool real) const {
    Tensor total = zeros({}, {.dtype = float64});
    for (const auto& [in_place, plain] : reads_) total = total + sum(square(real ? in_place : plain));
    for (const Pair& pair : alive_) {
      const Tensor value = real ? pair.real : plain(pair);
      total = total + sum(value * value * value);
    }
    return total;
  }

  void check_values() const {
    for (const Pair& pair : alive_) REQUIRE(pair.real.to_vector<double>() == plain(pair).to_vector<double>());
  }

  std::string text;  ///< what it did

 private:
  Tensor plain(const Pair& pair) const {
    const Tensor flat = index_select(bases_[pair.base], 0, reshape(pair.places, {-1}));
    return reshape(flat, pair.places.shape());
  }

  const Pair& some() {
    return alive_[static_cast<std::size_t>(draw(random_, static_cast<int>(alive_.size())))];
  }

  void add_base(bool constant) {
    const Tensor& x = leaves_[static_cast<std::size_t>(draw(random_, 2))];
    const Tensor real = constant ? full({3, 4}, 0.75, {.dtype = float64}) : x * 0.5;
    bases_.push_back(reshape(constant ? full({3, 4}, 0.75, {.dtype = float64}) : x * 0.5, {12}));
    alive_.push_back({real, bases_.size() - 1, reshape(arange(12), {3, 4})});
    text += constant ? "constant; " : "base; ";
  }

  void add_view() {
    const Pair from = some();
    const ViewStep view = ViewStep::drawn(random_, from.real.shape());
    if (from.real.numel() > 200 && view.kind >= 7) return;
    const Tensor real = view(from.real);
    // Of a tensor without the strides for it, reshape is a copy: a base of its own.
    if (real.impl().storage == from.real.impl().storage) {
      alive_.push_back({real, from.base, view(from.places)});
    } else {
      bases_.push_back(reshape(view(plain(from)), {real.numel()}));
      alive_.push_back({real, bases_.size() - 1, reshape(arange(real.numel()), real.shape())});
    }
    text += "view " + std::to_string(view.kind) + "; ";
  }

  void read() {
    const Pair& pair = some();
    reads_.emplace_back(pair.real * 1.5, plain(pair) * 1.5);
    text += "read; ";
  }

  /// A value that broadcasts to the target's shape, in both worlds.
  std::pair<Tensor, Tensor> operand(const Shape& shape) {
    switch (draw(random_, 4)) {
      case 0: {  // another tensor of the shape, a part of itself among them
        for (int tries = 0; tries < 5; ++tries) {
          const Pair& other = some();
          if (other.real.shape() == shape) return {other.real, plain(other)};
        }
        [[fallthrough]];
      }
      case 1: {
        const Tensor& x = leaves_[static_cast<std::size_t>(draw(random_, 2))];
        const Tensor one = select(select(x, 0, draw(random_, 3)), 0, draw(random_, 4));
        return {one, one};
      }
      case 2: {
        const Tensor& x = leaves_[static_cast<std::size_t>(draw(random_, 2))];
        const Tensor element = select(select(x, 0, 1), 0, 2) * select(select(x, 0, 0), 0, 1);
        return {expand(element, shape), expand(element, shape)};
      }
      default:
        return {full(shape, 0.9, {.dtype = float64}), full(shape, 0.9, {.dtype = float64})};
    }
  }

  void write() {
    const Pair target = some();
    const Tensor before = plain(target);
    const auto [real, value] = operand(target.real.shape());
    const int kind = draw(random_, 7);
    Tensor after;
    switch (kind) {
      case 0:
        after = expand(value * 1, before.shape());
        break;
      case 1:
        after = before + value;
        break;
      case 2:
        after = before * value;
        break;
      case 3:
        after = before - value;
        break;
      case 4:
        after = full(before.shape(), 0.5, {.dtype = float64});
        break;
      case 5:
        after = clamp(before, {.min = -1, .max = 1.25});
        break;
      default:
        after = lerp(before, value, 0.25);
        break;
    }
    try {
      switch (kind) {
        case 0:
          copy_(target.real, real);
          break;
        case 1:
          target.real += real;
          break;
        case 2:
          target.real *= real;
          break;
        case 3:
          target.real -= real;
          break;
        case 4:
          fill_(target.real, 0.5);
          break;
        case 5:
          clamp_(target.real, {.min = -1, .max = 1.25});
          break;
        default:
          lerp_(target.real, real, 0.25);
          break;
      }
    } catch (const ShapeError& error) {  // elements that share memory
      REQUIRE(std::string(error.what()).find("share memory") != std::string::npos);
      text += "refused; ";
      return;
    }
    text += "write " + std::to_string(kind) + "; ";
    // The base with the new values in the view's places.
    const Tensor& base = bases_[target.base];
    const Tensor places = reshape(target.places, {-1});
    const Tensor kept = scatter(ones({base.numel()}, {.dtype = float64}), 0, places, 0);
    bases_[target.base] =
        base * kept + index_add(zeros({base.numel()}, {.dtype = float64}), 0, places, reshape(after, {-1}));
  }

  std::mt19937 random_;
  std::vector<Tensor> leaves_;
  std::vector<Tensor> bases_;  ///< in the world without in-place functions: [elements]
  std::vector<Pair> alive_;
  std::vector<std::pair<Tensor, Tensor>> reads_;
};

void check_close(const Tensor& a, const Tensor& b) {
  const auto left = a.to_vector<double>();
  const auto right = b.to_vector<double>();
  REQUIRE(left.size() == right.size());
  for (std::size_t i = 0; i < left.size(); ++i)
    REQUIRE(left[i] == Approx(right[i]).epsilon(1e-9).margin(1e-9));
}

/// The loss, its gradients, and the gradients of the sum of their squares; zeros where there are none.
std::vector<Tensor> gradients(const Program& program, bool real) {
  const auto all_of = [&](const Tensor& y, bool graph) {
    Grads found(program.leaves().size());
    if (y.requires_grad())
      found = grad({y}, program.leaves(), {},
                   {.retain_graph = true, .create_graph = graph, .allow_unused = true});
    for (Tensor& g : found)
      if (!g.defined()) g = zeros({3, 4}, {.dtype = float64});
    return found;
  };
  std::vector<Tensor> all{program.loss(real)};
  Tensor norm = zeros({}, {.dtype = float64});
  for (const Tensor& g : all_of(all[0], true)) {
    all.push_back(g);
    norm = norm + sum(g * g);
  }
  for (const Tensor& g : all_of(norm, false)) all.push_back(g);
  return all;
}

}  // namespace

TEST_CASE("programs with in-place functions give what the same programs without them give") {
  const char* wanted = std::getenv("PLEAT_PROGRAMS");
  // What is on the tape does not depend on the device; a GPU, and more so its double, starts kernels slowly.
  const int by_default = default_device().is_cuda() ? 200 : 2000;
  const int programs = wanted != nullptr ? std::atoi(wanted) : by_default;
  int refused = 0;
  for (int seed = 0; seed < programs; ++seed) {
    Program program(static_cast<unsigned>(seed));
    const int steps = 3 + seed % 14;
    for (int i = 0; i < steps; ++i) program.step();
    INFO("program " << seed << ": " << program.text);
    program.check_values();
    std::vector<Tensor> in_place;
    try {
      in_place = gradients(program, true);
    } catch (const AutogradError& error) {
      INFO(error.what());
      REQUIRE(std::string(error.what()).find("changed in place since") != std::string::npos);
      ++refused;
      continue;
    }
    const std::vector<Tensor> plain = gradients(program, false);
    REQUIRE(in_place.size() == plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) check_close(in_place[i], plain[i]);
  }
  if (wanted != nullptr) WARN(programs << " programs, " << refused << " refused");
  // A saved tensor that is written later is an error, as it must be; most programs have none.
  CHECK(refused < programs / 4);
}
