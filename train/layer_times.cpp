#include "pleat/train/layer_times.h"

#include <algorithm>
#include <utility>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/random/random.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/mode_scope.h"
#include "pleat/ops/conv/tune/tune.h"

namespace pleat::train {
namespace {

/// A convolution that a layer computes.
struct Convolution {
  Shape input;
  MemoryFormat format = MemoryFormat::contiguous;
  Tensor weight, bias;
  ConvOptions options;
  std::string text;  ///< equal ones have equal texts
};

void find_conv(const nn::Module& module, const Tensor& input, Convolution& found) {
  const auto* layer = dynamic_cast<const nn::ConvModule*>(&module);
  if (layer == nullptr || layer->padding_mode != "zeros") return;
  found = {.input = input.shape(),
           .format = input.is_contiguous(MemoryFormat::channels_last) ? MemoryFormat::channels_last
                                                                      : MemoryFormat::contiguous,
           .weight = layer->weight,
           .bias = layer->bias,
           .options = layer->options,
           .text = layer->options_text() + to_string(input.shape())};
}

/// Of a network's calls those that called no other module.
class Leaves : public nn::ForwardObserver {
 public:
  explicit Leaves(nn::Module& net) {
    for (const auto& [path, module] : net.named_modules()) paths_.emplace(module, path);
  }
  void enter(nn::Module&, const Tensor&) override {
    if (!open_.empty()) open_.back() = true;
    open_.push_back(false);
  }
  void leave(nn::Module& module, const Tensor& input, const Tensor& output) override {
    const bool called_others = open_.back();
    open_.pop_back();
    if (called_others || !output.defined()) return;
    layers.push_back({.path = paths_.contains(&module) ? paths_.at(&module) : "",
                      .type = module.type_name(),
                      .options = module.options_text(),
                      .output = output.shape(),
                      .parameters = module.num_parameters()});
    find_conv(module, input, convolutions.emplace_back());
  }

  std::vector<LayerTimes> layers;
  std::vector<Convolution> convolutions;  ///< of each layer; without a weight for others

 private:
  std::map<const nn::Module*, std::string> paths_;
  std::vector<bool> open_;  ///< whether the calls that have not ended called others
};

std::map<std::string, double> times_of(const Convolution& conv, const ops::TuneOptions& how) {
  Generator generator(1);
  const Tensor x =
      randn(conv.input, {.dtype = conv.weight.dtype(), .device = conv.weight.device()}, generator)
          .to(conv.format);
  std::map<std::string, std::map<std::string, double>> best;  // of its plans, by pass
  for (const ops::Timing& timing : ops::tune_conv(x, conv.weight, conv.bias, conv.options, how)) {
    if (!timing.failure.empty()) continue;
    const std::string name = timing.implementation.substr(0, timing.implementation.find(':'));
    const auto [place, is_new] = best[name].emplace(timing.pass, timing.milliseconds);
    if (!is_new) place->second = std::min(place->second, timing.milliseconds);
  }
  std::map<std::string, double> times;
  for (const auto& [name, passes] : best) {
    if (passes.size() < 3) continue;
    double sum = 0;
    for (const auto& [pass, milliseconds] : passes) sum += milliseconds;
    times.emplace(name, sum);
  }
  return times;
}

}  // namespace

std::vector<LayerTimes> time_layers(nn::Module& net, const Tensor& input, ops::TuneOptions how) {
  const NoGrad off_the_tape;
  Leaves leaves(net);
  {
    const nn::ModeScope scope(net, nn::Mode::evaluation);
    (void)net(input);
  }
  std::map<std::string, std::map<std::string, double>> known;
  for (std::size_t i = 0; i < leaves.layers.size(); ++i) {
    const Convolution& conv = leaves.convolutions[i];
    if (!conv.weight.defined()) continue;
    const auto [place, is_new] = known.try_emplace(conv.text);
    if (is_new) place->second = times_of(conv, how);
    leaves.layers[i].milliseconds = place->second;
  }
  return std::move(leaves.layers);
}

}  // namespace pleat::train
