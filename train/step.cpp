#include "pleat/train/step.h"

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/backward.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/ops/elementwise/arithmetic.h"

namespace pleat::train {
namespace {

constexpr auto unwatched = [](const auto& compute) { return compute(); };

bool same_shapes(const data::Batch& a, const data::Batch& b) {
  return a.inputs.shape() == b.inputs.shape() && a.targets.shape() == b.targets.shape();
}

}  // namespace

Step::Step(nn::Module& net, optim::Optimizer& optimizer, Loss loss, StepOptions options)
    : net_(net),
      optimizer_(optimizer),
      loss_of_(std::move(loss)),
      options_(options),
      scaler_{{.enabled = options.autocast == float16}},
      watch_(net) {
  check<ValueError>(options.accumulate >= 1, "Step: accumulate must be at least 1, got {}",
                    options.accumulate);
  check<ValueError>(options.accumulate == 1 || !options.cuda_graph,
                    "Step: a CUDA graph holds whole steps; take accumulate = 1, got {}", options.accumulate);
}

void Step::run(const StepPlace& place, const data::Batch& batch) {
  check<Error>(net_.training(),
               "Step: the network is in evaluation mode, in which dropout and batch norms do not train; call "
               "train() first (and eval() of those parts that are to stay as they are)");
  if (options_.cuda_graph) {
    train_by_graph(batch);
    watch_.add(place, loss_);
  } else {
    train(batch, [&](const auto& compute) { return watch_.compute(place, batch, compute); });
  }
}

template <class Watch>
void Step::train(const data::Batch& batch, const Watch& watch) {
  loss_ = watch([&] {
    const Autocast types{options_.autocast.value_or(float16), {.enabled = options_.autocast.has_value()}};
    output_ = net_(batch.inputs);
    return loss_of_(output_, batch.targets);
  });
  if (pending_ == 0) optimizer_.zero_grad();
  const Tensor share = options_.accumulate == 1 ? loss_ : loss_ / options_.accumulate;
  scaler_.scale(share).backward();
  if (++pending_ == options_.accumulate) update();
}

void Step::update() {
  if (options_.clip_grad_norm) {
    scaler_.unscale_(optimizer_);
    optim::clip_grad_norm_(optimizer_.parameters(), {.max_norm = *options_.clip_grad_norm});
  }
  scaler_.step(optimizer_);
  scaler_.update();
  pending_ = 0;
}

void Step::train_by_graph(const data::Batch& batch) {
  if (!static_.inputs.defined()) {  // the first step, with all work that happens only once
    static_ = {batch.inputs.clone(), batch.targets.clone()};
    train(batch, unwatched);
  } else if (same_shapes(batch, static_)) {
    copy_(static_.inputs, batch.inputs);
    copy_(static_.targets, batch.targets);
    if (!graph_) {
      graph_.emplace([&] { train(static_, unwatched); },
                     CudaGraphOptions{.device = batch.inputs.device(), .warmup = 0});
      loss_of_graph_ = loss_;
      output_of_graph_ = output_;
    }
    graph_->replay();
    loss_ = loss_of_graph_;
    output_ = output_of_graph_;
  } else {  // the rest of an epoch
    train(batch, unwatched);
  }
}

bool Step::finish() {
  watch_.finish();
  if (pending_ == 0) return false;
  // The sum was divided by the number of batches that an update has.
  const NoGrad off_the_tape;
  for (const Tensor& parameter : optimizer_.parameters())
    if (const Tensor gradient = parameter.grad(); gradient.defined())
      multiply_(gradient, static_cast<double>(options_.accumulate) / static_cast<double>(pending_));
  update();
  return true;
}

}  // namespace pleat::train
