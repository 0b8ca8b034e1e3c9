#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pleat/nn/module.h"
#include "pleat/nn/record_forward.h"

/// What Pleat's layers say once: their name and their options.

namespace pleat::nn {

/// The name of a class, as an argument of a template.
template <std::size_t size>
struct ClassName {
  char text[size];
  consteval ClassName(const char (&name)[size]) {
    for (std::size_t i = 0; i < size; ++i) text[i] = name[i];
  }
};

struct NoOptions {};

namespace detail {
/// Who has options. An argument by which these functions are found for options declared later.
struct LayerName {
  std::string_view text;
};
/// Throws ValueError for options outside their ranges; there is an overload for options that have ranges.
template <class Options>
void check_options(LayerName, const Options&) {}
/// As Module::options_text; there is an overload for options that are printed.
template <class Options>
std::string text_of_options(LayerName, const Options&) {
  return {};
}
/// The name of a member, as g++ and clang write the argument of a template.
template <auto field>
constexpr std::string_view name_of() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_first_of(";])", text.find("field = ")));
  return text.substr(text.rfind(':') + 1);
}
/// The value of an option, as it is printed.
std::string text_of_option(LayerName, int64_t value);
std::string text_of_option(LayerName, double value);
std::string text_of_option(LayerName, const Shape& value);

template <class Last>
using OptionsBy = std::conditional_t<std::same_as<Last, Tensor>, NoOptions, Last>;
/// What a function takes: tensors, and behind them options, or these fields of options.
template <class Function, class... Fields>
struct Takes;
template <class... T>
struct Takes<Tensor (*)(T...)> {
  using Options = OptionsBy<typename decltype((std::type_identity<std::remove_cvref_t<T>>(), ...))::type>;
  static constexpr std::size_t tensors = sizeof...(T) - !std::same_as<Options, NoOptions>;
};
template <class... T, class O, class First, class... More>
struct Takes<Tensor (*)(T...), First O::*, More O::*...> {
  using Options = O;
  static constexpr std::size_t tensors = sizeof...(T) - 1 - sizeof...(More);
};
}  // namespace detail

/// The base of a layer: the name of its class, and its options.
///
///   struct PixelShuffle : Layer<"PixelShuffle", PixelShuffleOptions> {
///     using Layer::Layer;
///     Tensor forward(const Tensor& x) override { return pixel_shuffle(x, options.upscale_factor); }
///   };
template <ClassName name, class Options = NoOptions>
class Layer : public Module {
 public:
  explicit Layer() requires std::default_initializable<Options> : Layer(Options()) {}
  /// Throws ValueError for options outside their ranges.
  explicit Layer(Options options_) : options(std::move(options_)) {
    check_options(detail::LayerName{name.text}, options);
  }
  std::string type_name() const override { return name.text; }
  std::string options_text() const override { return text_of_options(detail::LayerName{}, options); }

  [[no_unique_address]] Options options;
};

/// A layer around a function of tensors, behind which it takes the layer's options, or the named ones of
/// them. Weights among the options are buffers: saved, and moved with the layer.
///
///   using Softmax = FunctionLayer<"Softmax", softmax, &SoftmaxOptions::dim>;
template <ClassName name, auto function, auto... fields>
class FunctionLayer
    : public Layer<name, typename detail::Takes<decltype(function), decltype(fields)...>::Options> {
  using Takes = detail::Takes<decltype(function), decltype(fields)...>;
  using Base = Layer<name, typename Takes::Options>;

 public:
  using Base::Base;
  using Module::operator();
  /// Throws Error where the function takes several tensors.
  Tensor forward(const Tensor& x) override {
    if constexpr (Takes::tensors == 1)
      return call(x);
    else
      return Module::forward(x);
  }
  Tensor forward(const Tensor& a, const Tensor& b) requires(Takes::tensors == 2) {
    const RecordForward range(*this, a, b);
    return range.run([&] { return call(a, b); });
  }
  Tensor forward(const Tensor& a, const Tensor& b, const Tensor& c) requires(Takes::tensors == 3) {
    const RecordForward range(*this, a, b, c);
    return range.run([&] { return call(a, b, c); });
  }
  Tensor operator()(const Tensor& a, const Tensor& b) requires(Takes::tensors == 2) { return forward(a, b); }
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c) requires(Takes::tensors == 3) {
    return forward(a, b, c);
  }
  void members(Members& m) override {
    if constexpr (requires { this->options.weight; }) m.buffer("weight", this->options.weight);
    if constexpr (requires { this->options.pos_weight; }) m.buffer("pos_weight", this->options.pos_weight);
  }
  std::string options_text() const override {
    std::string text = Base::options_text();
    [[maybe_unused]] const auto add = [&](std::string_view field, const std::string& value) {
      text.append(text.empty() ? "" : ", ").append(field).append("=").append(value);
    };
    (add(detail::name_of<fields>(), text_of_option(detail::LayerName{}, this->options.*fields)), ...);
    return text;
  }

 private:
  template <class... T>
  Tensor call(const T&... tensors) const {
    if constexpr (sizeof...(fields) > 0)
      return function(tensors..., this->options.*fields...);
    else if constexpr (std::same_as<typename Takes::Options, NoOptions>)
      return function(tensors...);
    else
      return function(tensors..., this->options);
  }
};

/// The base of a layer with a weight and a bias, which it lists; one that is undefined is none.
template <class Base>
struct WeightAndBias : Base {
  using Base::Base;
  void members(Members& m) override {
    m("weight", weight);
    m("bias", bias);
  }

  Tensor weight, bias;
};

}  // namespace pleat::nn
