#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pleat/pleat.h"

namespace pleat::bench {

/// A training step of a network for images of 32 x 32 pixels, on noise instead of images, with its parts one
/// by one.
struct TrainingStepOptions {
  std::string model = "resnet20";  ///< of make_model, examples/common/cifar_models.h
  int64_t batch_size = 128;
  std::string optimizer = "sgd";  ///< with momentum and weight decay; or "adam"
  std::string dtype = "float32";  ///< half types: mixed precision by Autocast
  std::string format = "auto";    ///< of the images; auto: as they come, contiguous
  int workers = 0;                ///< threads that prepare batches ahead; 0: nothing of it is hidden
  Device device = {};
};

class TrainingStep {
 public:
  /// Throws ValueError for a model that there is not.
  explicit TrainingStep(const TrainingStepOptions& options);

  // In this order.
  void data();  ///< the next batch: picked, cropped, mirrored, normalised, brought to the device
  void forward();
  void loss();  ///< cross entropy
  void backward();
  void optimize();  ///< the optimiser's step, and the gradients set free

  int64_t num_parameters() const { return net_.num_parameters(); }
  /// ‖g - g'‖ / ‖g'‖ over the gradients of all parameters for one batch, g' computed in float64 on the CPU
  /// from the same parameters. Leaves gradients and parameters as they are, but counts as a forward pass for
  /// running statistics.
  double gradient_error();

 private:
  TrainingStepOptions options_;
  pleat::data::DataLoader loader_;
  std::optional<pleat::data::DataLoader::Iterator> next_;
  nn::Sequential net_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Tensor images_, labels_, logits_, loss_;
};

}  // namespace pleat::bench
