#include "pleat/autograd/call.h"

#include "pleat/autograd/autocast.h"

namespace pleat {

Call::Call(const char* name, std::span<const Tensor> inputs, std::initializer_list<Attribute> attributes)
    : TracedCall(name) {
  if (!is_watched()) return;
  std::vector<const Tensor*> list;
  for (const Tensor& input : inputs) list.push_back(&input);
  begin(list, std::span(attributes.begin(), attributes.size()));
}

void Call::cast(Autocasts casts) {
  if (!autocast_dtype()) return;
  for (std::size_t i = 0; i < count_; ++i) cast_.push_back(*inputs_[i]);
  if (casts == Autocasts::to_half)
    autograd::cast_to_half(cast_);
  else
    for (Tensor& input : cast_) input = autocast_to_float32(input);
  for (std::size_t i = 0; i < count_; ++i) inputs_[i] = &cast_[i];
}

std::vector<Tensor> Call::results(std::vector<Tensor> outputs, std::vector<Derivative> derivatives) const {
  return gives(record(name(), std::move(outputs), std::move(derivatives)));
}
Tensor Call::result(const Tensor& output, std::vector<Derivative> derivatives) const {
  return gives(record(name(), output, std::move(derivatives)));
}

}  // namespace pleat
