#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleat/core/tensor/tensor.h"

/// How a function becomes differentiable: compute the result off the tape, then record it with the
/// closure that turns the result's gradient into the inputs' gradients. The closure is written with
/// differentiable functions, so that gradients of gradients come for free.
///
///   Tensor relu(const Tensor& x) {
///     Tensor y = no_grad([&] { return maximum(x, 0); });
///     return record("relu", y, {x}, [y = saved(y)](const Tensor& dy) -> Grads { return {where(*y > 0, dy,
///     0)}; });
///   }
///
/// The tape itself undoes broadcasting and type promotion of inputs: a closure may return gradients in the
/// shape and type of the result.

namespace pleat {

namespace autograd {
struct Node;
/// Whether `record` has to know of an input: its gradient is wanted, or something watches.
bool matters(const Tensor& input);
bool any_matters(const std::vector<Tensor>& inputs);
}  // namespace autograd

/// One gradient for each input, or for each output. An undefined Tensor stands for zero.
using Grads = std::vector<Tensor>;

/// Which inputs' gradients are wanted.
class Needs {
 public:
  explicit Needs(std::vector<bool> wanted) : wanted_(std::move(wanted)) {}
  bool operator[](std::size_t input) const { return wanted_[input]; }

 private:
  std::vector<bool> wanted_;
};

/// A tensor kept for backward. Reading it (`*s`) throws AutogradError when its elements were changed in place
/// since. Empty (and free) while nothing is recorded.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& tensor);
  Tensor operator*() const;

 private:
  Tensor alias_;  // off the original's slot, so that an output saved by its own node is no cycle
  uint64_t id_ = 0;
  uint64_t version_ = 0;
};

inline Saved saved(const Tensor& tensor) { return Saved(tensor); }

/// Inputs, and what computes their gradients: gets the outputs' gradients (zeros where nothing arrived) and
/// returns one gradient for each input; those that `Needs` does not request may stay undefined.
struct Derivative {
  std::vector<Tensor> inputs;
  std::function<Grads(const Grads&, const Needs&)> backward;
};

/// The derivative with respect to one input. A function with several of these computes, and keeps tensors
/// for, only those that are wanted.
template <std::invocable<const Tensor&> F>
Derivative grad_of(const Tensor& input, F backward) {
  if (!autograd::matters(input)) return {};
  return {{input}, [backward = std::move(backward)](const Grads& dys, const Needs&) -> Grads {
            return {backward(dys[0])};
          }};
}

/// Puts `outputs`, computed by the function `name` from the derivatives' inputs, on the tape, and returns
/// them. Does nothing under NoGrad or when no input requires a gradient: a function of your own that computes
/// under NoGrad ends its scope before. In anomaly mode throws NumericError when an output holds a NaN.
std::vector<Tensor> record(std::string name, std::vector<Tensor> outputs,
                           std::vector<Derivative> derivatives);
Tensor record(std::string name, const Tensor& output, std::vector<Derivative> derivatives);

/// The forms that most functions use: closures of one output's gradient, with or without Needs.
template <class F>
requires std::is_invocable_r_v<Grads, F, const Tensor&> Tensor record(std::string name, const Tensor& output,
                                                                      std::vector<Tensor> inputs,
                                                                      F backward) {
  if (!autograd::any_matters(inputs)) return output;
  std::vector<Derivative> one;
  one.push_back(
      {std::move(inputs), [backward = std::move(backward)](const Grads& dys, const Needs&) -> Grads {
         return backward(dys[0]);
       }});
  return record(std::move(name), output, std::move(one));
}

template <class F>
requires std::is_invocable_r_v<Grads, F, const Tensor&, const Needs&> Tensor
record(std::string name, const Tensor& output, std::vector<Tensor> inputs, F backward) {
  if (!autograd::any_matters(inputs)) return output;
  std::vector<Derivative> one;
  one.push_back(
      {std::move(inputs), [backward = std::move(backward)](const Grads& dys, const Needs& needs) -> Grads {
         return backward(dys[0], needs);
       }});
  return record(std::move(name), output, std::move(one));
}

namespace autograd {
/// Makes `view`, which shows elements of `input`, follow it: a function that changes one of them in place
/// changes the other, gradients and all. Does nothing while recording is off.
void follow(const Tensor& view, const Tensor& input);
bool anything_to_record(std::initializer_list<Tensor> tensors);

/// For the closure that computes the gradient of one input, of which few elements were read: the sum of what
/// came to that input from others, of the shape and with dy's type and device. The closure may add to it in
/// place, and then returns an undefined Tensor. Undefined where there is none that may be changed.
Tensor gradient_so_far(const Tensor& dy, const Shape& shape);
}  // namespace autograd

/// Whether an in-place function of `x` and `others` has to be recorded, by `replace_in_place`: while
/// recording, when one of them requires a gradient, or the tensor that x is a view of.
bool changes_tape(const Tensor& x, std::initializer_list<Tensor> others = {});

/// Changes `x` in place to `f(x as it was)`, on the tape. Where x is a view, the tensor it is a view of gets
/// the history of the change, and all other views of that read it from then on. A tensor that shares the
/// elements otherwise (by detach(), by a view taken under NoGrad or by a function of pleat::ops) does not
/// know of the change: functions that are recorded refuse it from then on. Throws AutogradError, before
/// anything is changed, for a leaf that requires a gradient and for a view of one.
void replace_in_place(const char* op, const Tensor& x, const std::function<Tensor(const Tensor&)>& f);

}  // namespace pleat
