#include "pleat/nn/options_text.h"

#include <vector>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/nn/layer.h"

namespace pleat::nn {

OptionText::OptionText(int64_t value) : text(std::to_string(value)) {}

OptionText::OptionText(double value) : text(fmt::format("{}", value)) {}

OptionText::OptionText(const Shape& sizes) : text(pleat::to_string(sizes)) {}

OptionText::OptionText(const Padding& padding) : text(padding.mode()) {
  if (!text.empty()) return;
  std::vector<std::string> sides;
  for (const auto& [low, high] : padding.sides())
    sides.push_back(low == high ? std::to_string(low) : fmt::format("({}, {})", low, high));
  text = sides.size() == 1 ? sides[0] : fmt::format("({})", fmt::join(sides, ", "));
}

OptionText::OptionText(const PerDim& values)
    : text(values.values().size() == 1 ? std::to_string(values.values()[0])
                                       : fmt::format("({})", fmt::join(values.values(), ", "))) {}

OptionsText& OptionsText::operator()(const OptionText& value) {
  text_ += (text_.empty() ? "" : ", ") + value.text;
  return *this;
}

OptionsText& OptionsText::operator()(const char* name, const OptionText& value) {
  return (*this)(name + ('=' + value.text));
}

OptionsText& OptionsText::operator()(const char* name, const OptionText& value, const OptionText& usual) {
  return value.text == usual.text ? *this : (*this)(name, value);
}

std::string detail::text_of_option(LayerName, int64_t value) { return std::to_string(value); }
std::string detail::text_of_option(LayerName, double value) { return OptionText(value).text; }
std::string detail::text_of_option(LayerName, const Shape& value) { return pleat::to_string(value); }

}  // namespace pleat::nn
