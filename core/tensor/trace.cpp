#include "pleat/core/tensor/trace.h"

namespace pleat {

Attribute::Attribute(const char* attribute, Integer number) : name(attribute), value(int64_t{number}) {}
Attribute::Attribute(const char* attribute, Flag flag) : name(attribute), value(int64_t{bool{flag}}) {}
Attribute::Attribute(const char* attribute, const char* text)
    : name(attribute), value(std::string_view(text)) {}
Attribute::Attribute(const char* attribute, std::vector<int64_t> list)
    : name(attribute), value(std::move(list)) {}
Attribute::Attribute(const char* attribute, const Shape& list)
    : Attribute(attribute, std::vector<int64_t>(list)) {}
Attribute::Attribute(double number, std::string_view attribute) : name(attribute), value(number) {}
Attribute::Attribute(const Number& number, std::string_view attribute) : name(attribute) {
  if (number.kind() == float64)
    value = number.to<double>();
  else
    value = number.to<int64_t>();
}

struct TracedCall::Traced {
  CallObserver* observer;
  std::vector<TracedInput> inputs;
  Attributes attributes;
};

std::vector<const Tensor*> TracedCall::pointers(Inputs inputs) {
  std::vector<const Tensor*> list;
  for (const Tensor& input : inputs) list.push_back(&input);
  return list;
}

void TracedCall::begin(std::span<const Tensor* const> inputs, std::span<const Attribute> attributes) {
  Range::begin({.kind = RangeKind::op, .name = name_, .inputs = inputs});
  if (detail::call_observer == nullptr) return;
  traced_ = new Traced{detail::call_observer, {}, {attributes.begin(), attributes.end()}};
  for (const Tensor* input : inputs) traced_->inputs.emplace_back(*input);
  detail::call_observer = nullptr;
}

void TracedCall::report(std::span<const Tensor> outputs) const {
  traced_->observer->called(name_, traced_->inputs, outputs, traced_->attributes);
}

void TracedCall::end() {
  detail::call_observer = traced_->observer;
  delete traced_;
}

}  // namespace pleat
