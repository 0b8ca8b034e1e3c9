#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "pleat/data/image_folder.h"
#include "pleat/data/transforms.h"
#include "pleat/models/classifier_options.h"
#include "pleat/nn/containers.h"

namespace pleat::train {

/// A network of models/make_classifier.h, or of an ONNX file, with all that is needed to use it on a picture.
struct Classifier {
  std::string model;  ///< its name there, or the file
  models::ClassifierOptions options;
  std::vector<std::string> class_names;  ///< in the order of the results
  std::vector<double> mean, std;         ///< of the channels, as shares of 255: for data::normalize
  nn::Sequential net;

  /// Bytes [N, channels, H, W] to what the network takes.
  data::Transform normalization() const { return data::normalize(mean, std); }
};

/// Makes the network. A model "net.onnx" is the network of that file (onnx/import.h), whose last linear layer
/// becomes a new one where it has another number of classes; the file is needed again where the classifier is
/// read. Throws ValueError for an unknown model, and unless there is a name for each
/// class and mean and std for each channel.
Classifier make_classifier(const std::string& model, models::ClassifierOptions options,
                           std::vector<std::string> class_names, std::vector<double> mean,
                           std::vector<double> std);

/// Weights by the names of the network's state dictionary, as any safetensors file, and the rest as
/// metadata: "model", "in_channels", "image_size", and "class_names", "mean" and "std" as JSON; `more`
/// beside them. Throws FileError.
void write_classifier(const std::filesystem::path& file, const Classifier& classifier,
                      const std::map<std::string, std::string>& more = {});
/// The network with the normalisation before it as an ONNX file (onnx/export.h): "image", bytes
/// [batch, channels, image_size, image_size], to "logits" [batch, classes]. The metadata are the entries of
/// write_classifier. Throws FileError.
void export_classifier(const std::filesystem::path& file, Classifier& classifier);
/// The classifier of a file that write_classifier wrote. Throws FileError when it cannot be read or lacks
/// one of these entries, ValueError when the weights are not those of the model.
Classifier read_classifier(const std::filesystem::path& file);

/// Pictures of any size for networks of these options: the shorter side is resized to image_size, and
/// the middle cut out.
data::ImageFolderOptions pictures_of(const models::ClassifierOptions& options);

/// A class with its probability.
struct ClassProbability {
  std::string name;
  double probability;
};

/// What the network sees in a picture, the most probable class first. The picture is brought to the
/// network's size and channels as by `pictures_of`. In evaluation mode, off the tape. Throws FileError
/// as data::read_picture does.
std::vector<ClassProbability> classify(Classifier& classifier, const std::filesystem::path& picture);

}  // namespace pleat::train
