#include "pleat/inference/captured_plan.h"

#include "pleat/core/tensor/copy.h"

namespace pleat::inference {
namespace {

std::vector<Tensor> copies(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> made;
  made.reserve(tensors.size());
  for (const Tensor& t : tensors) made.push_back(ops::copy(t));
  return made;
}

}  // namespace

CapturedPlan::CapturedPlan(const Plan& plan, const std::vector<Tensor>& examples)
    : inputs_(copies(examples)),
      graph_([&] { outputs_ = plan.run(inputs_); }, {.device = examples[0].device()}),
      done_({.device = examples[0].device()}) {}

std::vector<Tensor> CapturedPlan::run(const std::vector<Tensor>& inputs) {
  const std::lock_guard lock(mutex_);
  const cuda::Stream stream = cuda::current_stream(inputs[0].device());
  stream.wait(done_);
  for (std::size_t i = 0; i < inputs.size(); ++i) ops::copy_into(inputs_[i], inputs[i]);
  graph_.replay();
  std::vector<Tensor> outputs = copies(outputs_);
  done_.record(stream);
  return outputs;
}

}  // namespace pleat::inference
