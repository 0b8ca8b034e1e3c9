#include "pleat/onnx/import/operators.h"

/// Sums and what is like them, along dimensions.

namespace pleat::onnx::imported {
namespace {

/// A reduction of the dimensions that a node names; of all where it names none. Over no dimension it is
/// `alone` of each element.
template <class F, class G>
Operator reduction(F f, G alone) {
  return {[f, alone](NodeCall& n) -> NodeResults {
            const auto axes = n.option(1, "axes");
            const Tensor& x = n.x();
            if ((!axes || axes->empty()) && n.flag("noop_with_empty_axes")) return alone(x);
            if (x.rank() == 0) return f(view(x, {1}), Dims{0}, false);
            Integers dims;
            for (const int64_t axis : axes.value_or(Integers())) dims.push_back(n.axis(axis, x.rank()));
            const Tensor y = f(x, Dims(dims), n.flag("keepdims", true));
            return y.dtype() == x.dtype() ? y : y.to(x.dtype());
          },
          {Slot::operand, Slot::option}};
}

Tensor same(X x) { return x; }

/// The extreme of no element is the type's own.
template <bool largest>
Tensor extreme(X x, const Dims& dims, bool keep) {
  if (x.numel() > 0) return largest ? max(x, dims, keep) : min(x, dims, keep);
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor none = sum(x.to(float32), dims, keep);
  return full_like(none, largest ? -infinity : infinity).to(x.dtype());
}

Tensor l2_norm(X x, const Dims& dims, bool keep) {
  if (is_floating(x.dtype())) return norm(x, dims, {.keepdim = keep});
  return sqrt(sum(square(x), dims, keep).to(float64));
}

template <bool largest>
Tensor index_of_extreme(NodeCall& n) {
  const Tensor& x = n.x();
  const int64_t axis = n.axis(n.integer("axis", 0), x.rank());
  const bool keep = n.flag("keepdims", true);
  const auto find = [&](X t) { return largest ? argmax(t, axis, keep) : argmin(t, axis, keep); };
  // The last of equal ones is the first from the other end.
  if (n.flag("select_last_index")) return x.size(axis) - 1 - find(flip(x, {axis}));
  return find(x);
}

/// Before opset 13 over all dimensions from the axis on.
template <class F>
Operator softmax_like(F f) {
  return {[f](NodeCall& n) -> NodeResults {
    const Tensor& x = n.x();
    const int64_t axis = n.axis(n.integer("axis", n.opset() < 13 ? 1 : -1), x.rank());
    if (n.opset() >= 13 || axis == x.rank() - 1) return f(x, axis);
    return reshape(f(flatten(x, axis), axis), Sizes(x.shape()));
  }};
}

Tensor hardmax(X x, int64_t axis) {
  return movedim(one_hot(argmax(x, axis), x.size(axis), x.dtype()), {x.rank() - 1}, {axis});
}

Tensor scanned(NodeCall& n, Tensor (*f)(X, Integer, Flag), double nothing) {
  const Tensor& x = n.x();
  const int64_t axis = n.axis(n.integer(1), x.rank());
  const bool reverse = n.flag("reverse");
  const Tensor y = f(x, axis, reverse).to(x.dtype());
  return n.flag("exclusive") ? shifted(y, axis, reverse ? -1 : 1, nothing) : y;
}

Tensor lp_normalization(NodeCall& n) {
  const Tensor& x = n.x();
  const int64_t axis = n.axis(n.integer("axis", -1), x.rank());
  const Tensor size = norm(x, {axis}, {.p = static_cast<double>(n.integer("p", 2)), .keepdim = true});
  return x / maximum(size, 1e-30);
}

Tensor mean_variance_normalization(NodeCall& n) {
  const Dims dims(n.integers("axes", {0, 2, 3}));
  const Tensor centred = n.x() - mean(n.x(), dims, true);
  return centred / (sqrt(mean(square(centred), dims, true)) + 1e-9);
}

Reduction reduction_of(NodeCall& n) {
  return n.choice<Reduction>("reduction", "mean",
                             {{"mean", Reduction::mean}, {"sum", Reduction::sum}, {"none", Reduction::none}});
}

NodeResults cross_entropy_of(NodeCall& n) {
  const Tensor loss = cross_entropy(n.x(0), n.x(1),
                                    {.weight = n.x_or_none(2),
                                     .ignore_index = n.integer("ignore_index", -100),
                                     .reduction = reduction_of(n)});
  if (!n.wants(1)) return loss;
  return std::vector{loss, log_softmax(n.x(0), 1)};
}

Tensor nll_loss_of(NodeCall& n) {
  return nll_loss(n.x(0), n.x(1),
                  {.weight = n.x_or_none(2),
                   .ignore_index = n.integer("ignore_index", -100),
                   .reduction = reduction_of(n)});
}

}  // namespace

Operators reduce_operators() {
  Operators all{
      {"ArgMax/1(axis keepdims select_last_index)", {index_of_extreme<true>}},
      {"ArgMin/1(axis keepdims select_last_index)", {index_of_extreme<false>}},
      {"CumProd/2(exclusive reverse)",
       {[](NodeCall& n) -> NodeResults { return scanned(n, &cumprod, 1); }, {Slot::operand, Slot::option}}},
      {"CumSum/2(exclusive reverse)",
       {[](NodeCall& n) -> NodeResults { return scanned(n, &cumsum, 0); }, {Slot::operand, Slot::option}}},
      {"Hardmax/1(axis)", softmax_like(hardmax)},
      {"LogSoftmax/1(axis)", softmax_like([](X x, int64_t axis) { return log_softmax(x, axis); })},
      {"LpNormalization/1(axis p)", {lp_normalization}},
      {"MeanVarianceNormalization/1(axes)", {mean_variance_normalization}},
      {"NegativeLogLikelihoodLoss/3(ignore_index reduction)", {nll_loss_of}},
      {"Softmax/1(axis)", softmax_like([](X x, int64_t axis) { return softmax(x, axis); })},
      {"SoftmaxCrossEntropyLoss/3(ignore_index reduction)", {cross_entropy_of}},
  };
  const auto add = [&](const std::string& name, auto f, auto alone) {
    all.emplace(name + "/2(axes keepdims noop_with_empty_axes)", reduction(f, alone));
  };
  using D = const Dims&;
  const auto absolute = [](X x) { return abs(x); };
  add(
      "ReduceL1", [](X x, D dims, bool keep) { return sum(abs(x), dims, keep); }, absolute);
  add("ReduceL2", l2_norm, absolute);
  add(
      "ReduceLogSum", [](X x, D dims, bool keep) { return log(sum(x, dims, keep)); },
      [](X x) { return log(x); });
  add(
      "ReduceLogSumExp", [](X x, D dims, bool keep) { return logsumexp(x, dims, keep); }, same);
  add("ReduceMax", extreme<true>, same);
  add(
      "ReduceMean", [](X x, D dims, bool keep) { return mean(x, dims, keep); }, same);
  add("ReduceMin", extreme<false>, same);
  add(
      "ReduceProd", [](X x, D dims, bool keep) { return prod(x, dims, keep); }, same);
  add(
      "ReduceSum", [](X x, D dims, bool keep) { return sum(x, dims, keep); }, same);
  add(
      "ReduceSumSquare", [](X x, D dims, bool keep) { return sum(square(x), dims, keep); },
      [](X x) { return square(x); });
  return all;
}

}  // namespace pleat::onnx::imported
