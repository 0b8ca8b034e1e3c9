#include "pleat/inference/plan.h"

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"

namespace pleat::inference {

std::vector<Tensor> Plan::run(const std::vector<Tensor>& inputs, Quantizer* observer) const {
  std::vector<Tensor> values = constants_;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[static_cast<std::size_t>(inputs_[i])] = inputs[i];
  const bool verifies = !verified_;
  const auto verify = [&](const std::vector<int>& list, const std::string& where) {
    if (!verifies) return;
    for (const int v : list) {
      if (v < 0) continue;
      const auto& [shape, dtype] = expected_[static_cast<std::size_t>(v)];
      const Tensor& t = values[static_cast<std::size_t>(v)];
      check<ValueError>(t.defined() && t.shape() == shape && t.dtype() == dtype,
                        "Inference: {} gives a tensor {}, where the engine's file says {} {}; save it again",
                        where, t, shape, name(dtype));
    }
  };
  verify(inputs_, "an input");
  for (const Step& step : steps_) {
    const RecordFunction range(step.text);
    step.run(values);
    verify(step.writes, step.text);
    if (observer != nullptr) observer->observe(values);
    for (const int v : step.last_reads) values[static_cast<std::size_t>(v)] = {};
  }
  if (verifies) verified_ = true;
  std::vector<Tensor> outputs;
  outputs.reserve(outputs_.size());
  for (const int v : outputs_) {
    const Tensor& constant = constants_[static_cast<std::size_t>(v)];
    outputs.push_back(constant.defined() ? ops::copy(constant) : values[static_cast<std::size_t>(v)]);
  }
  return outputs;
}

std::string Plan::describe() const {
  std::string text;
  for (const Step& step : steps_) text += "  " + step.text + '\n';
  return text;
}

}  // namespace pleat::inference
