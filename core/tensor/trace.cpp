#include "pleat/core/tensor/trace.h"

namespace pleat {

struct TracedCall::Parts {
  CallObserver* observer;
  const char* name;
  std::vector<TracedInput> inputs;
  Attributes attributes;
};

void TracedCall::begin(const char* name, std::vector<TracedInput> inputs, Attributes attributes) {
  parts_ = new Parts{detail::call_observer, name, std::move(inputs), std::move(attributes)};
  detail::call_observer = nullptr;
}

void TracedCall::report(std::span<const Tensor> outputs) const {
  parts_->observer->called(parts_->name, parts_->inputs, outputs, parts_->attributes);
}

void TracedCall::end() {
  detail::call_observer = parts_->observer;
  delete parts_;
}

}  // namespace pleat
