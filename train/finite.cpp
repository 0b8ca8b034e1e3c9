#include "pleat/train/finite.h"

#include <cmath>

#include "pleat/autograd/anomaly.h"
#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::train {
namespace {

bool is_finite(const Tensor& t) {
  if (!t.defined() || !is_floating(t.dtype())) return true;
  return all(isfinite(t)).item() != 0;
}

/// The name of the first that is not finite; "" when all are.
std::string first_bad(const nn::NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors)
    if (!is_finite(tensor)) return name;
  return "";
}

std::string text_of_loss(const StepPlace& place, double value) {
  return fmt::format("the loss is {} in epoch {}, step {}, with learning rate {:g}",
                     std::isnan(value) ? "nan" : fmt::format("{:g}", value),  // not "-nan"
                     place.epoch, place.step, place.lr);
}

constexpr const char* remedy = "; a lower learning rate or clipped gradients may help";

}  // namespace

Readback::Readback(const Tensor& number) : number_(number.detach()) {
  const Device device = number.device();
  if (device.is_cpu()) return;
  number_ = ops::to_device(number_, Device(), {.non_blocking = true});
  done_.emplace(cuda::EventOptions{.device = device});
  done_->record();
}

double Readback::value() const {
  if (!is_ready()) done_->synchronize();
  return number_.item();
}

std::string first_not_finite(const std::function<void()>& compute) {
  try {
    const DetectAnomaly watch{{.infinities = true}};
    compute();
  } catch (const NumericError& error) {
    std::string text = error.what();  // "in 2 (Linear): anomaly: linear gave nan ..."
    const std::string opening = "anomaly: ";
    if (const auto at = text.find(opening); at != std::string::npos) text.erase(at, opening.size());
    return text;
  }
  return "";
}

Tensor finite_loss(const StepPlace& place, const data::Batch& batch, const nn::Module& net,
                   const std::function<Tensor()>& compute) {
  const uint64_t draws = default_generator().draws();
  Tensor loss = compute();
  const double value = loss.item();
  if (std::isfinite(value)) return loss;

  std::string text = text_of_loss(place, value);
  default_generator().set_draws(draws);
  const std::string op = first_not_finite([&] { (void)compute(); });
  text += op.empty() ? "; no op gave it when the step was repeated" : "; first " + op;
  if (!is_finite(batch.inputs) || !is_finite(batch.targets))
    throw NotFiniteError(text + "; the data of this batch are not finite themselves");
  if (const std::string name = first_bad(net.named_parameters()); !name.empty())
    text += "; " + name + " was not finite any more when the step began";
  throw NotFiniteError(text + remedy);
}

Tensor LossWatch::compute(const StepPlace& place, const data::Batch& batch,
                          const std::function<Tensor()>& compute) {
  if (batch.inputs.device().is_cpu()) return finite_loss(place, batch, net_, compute);
  Tensor loss = compute();
  add(place, loss);
  return loss;
}

void LossWatch::add(const StepPlace& place, const Tensor& loss) {
  added_.push_back({place, Readback(loss)});
  while (!added_.empty() && added_.front().loss.is_ready()) check_first();
}

void LossWatch::finish() {
  if (!added_.empty()) added_.back().loss.value();  // earlier ones have then arrived, too
  while (!added_.empty()) check_first();
}

void LossWatch::check_first() {
  const auto [place, loss] = added_.front();
  added_.erase(added_.begin());
  if (std::isfinite(loss.value())) return;
  std::string text = text_of_loss(place, loss.value()) +
                     "; a GPU's losses are read some steps later: on the CPU "
                     "this message would name the function that gave it";
  if (const std::string name = first_bad(net_.named_parameters()); !name.empty())
    text += "; " + name + " is not finite by now";
  throw NotFiniteError(text + remedy);
}

void check_finite(const nn::Module& net, const std::string& when) {
  std::string name = first_bad(net.named_parameters());
  if (name.empty()) name = first_bad(net.named_buffers());
  if (!name.empty()) throw NotFiniteError(name + " is not finite " + when + remedy);
}

}  // namespace pleat::train
