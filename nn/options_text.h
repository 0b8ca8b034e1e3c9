// Private header: not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pleat/core/base/required.h"
#include "pleat/ops/conv/options.h"
#include "pleat/ops/spatial/bounds.h"

namespace pleat::nn {

/// The value of an option, as it is printed.
struct OptionText {
  OptionText(bool value) : text(value ? "true" : "false") {}
  OptionText(int value) : OptionText(int64_t{value}) {}
  OptionText(int64_t value);
  OptionText(double value);
  OptionText(const std::string& value) : text(value) {}
  OptionText(const char* value) : text(value) {}
  OptionText(const Shape& sizes);
  OptionText(const PerDim& values);    ///< "2" or "(2, 1)"
  OptionText(const Padding& padding);  ///< "1", "(1, 2)", "((1, 2), 0)", "same"
  OptionText(const Bounds& bounds) : text(to_string(bounds)) {}
  template <class T>
  OptionText(const Required<T>& value) : OptionText(value.get()) {}
  template <class T>
  OptionText(const std::optional<T>& value) : OptionText(value ? OptionText(*value) : "none") {}

  std::string text;
};

/// The text of options, as modules print them: "3, 16, kernel_size=(3, 3), bias=false".
///
///   return OptionsText()(o.num_features)("eps", o.eps, 1e-5);
class OptionsText {
 public:
  /// One that has no default, without its name.
  OptionsText& operator()(const OptionText& value);
  OptionsText& operator()(const char* name, const OptionText& value);
  /// Only where it differs from the default.
  OptionsText& operator()(const char* name, const OptionText& value, const OptionText& usual);
  operator std::string() const { return text_; }

 private:
  std::string text_;
};

}  // namespace pleat::nn
