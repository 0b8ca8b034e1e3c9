#include "pleat/train/saved_classifier.h"

#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/json_input.h"
#include "pleat/core/tensor/create.h"
#include "pleat/io/safetensors.h"
#include "pleat/models/make_classifier.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/mode_scope.h"
#include "pleat/onnx/export.h"
#include "pleat/onnx/import.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat::train {
namespace {

using nlohmann::json;
using Metadata = std::map<std::string, std::string>;

std::string entry(const std::string& where, const Metadata& metadata, const char* name) {
  const auto found = metadata.find(name);
  check<FileError>(found != metadata.end(),
                   "{}: has no entry \"{}\": these are weights, but not of a classifier that Pleat saved",
                   where, name);
  return found->second;
}

template <class T>
T json_entry(const std::string& where, const Metadata& metadata, const char* name) {
  const std::string text = entry(where, metadata, name);
  try {
    return parse_json<json>(text, where).get<T>();
  } catch (const json::exception& error) {
    fail<FileError>("{}: the entry \"{}\": {}", where, name, json_cause(error));
  }
}

/// All but the weights, as text.
Metadata metadata_of(const Classifier& c) {
  Metadata metadata;
  metadata["model"] = c.model;
  metadata["in_channels"] = std::to_string(c.options.in_channels);
  metadata["image_size"] = std::to_string(c.options.image_size);
  // Names of folders may be any bytes.
  metadata["class_names"] = json(c.class_names).dump(-1, ' ', false, json::error_handler_t::replace);
  metadata["mean"] = json(c.mean).dump();
  metadata["std"] = json(c.std).dump();
  return metadata;
}

/// The network of an ONNX file, with a last linear layer for so many classes.
nn::Sequential from_onnx(const std::string& file, const models::ClassifierOptions& options) {
  const int64_t classes = options.num_classes;
  onnx::ImportedNetwork net = onnx::import_onnx(file);
  const std::vector<onnx::TensorInfo> outputs = net.outputs();
  std::string head;
  for (const auto& [name, module] : net.named_modules())
    if (module->type_name() == "Gemm" || module->type_name() == "Linear") head = name;
  const bool is_classifier = net.inputs().size() == 1 && outputs.size() == 1 && outputs[0].shape.size() == 2;
  const int64_t before = is_classifier ? std::atoll(outputs[0].shape[1].c_str()) : 0;
  check<ValueError>(is_classifier && !head.empty() && before > 0,
                    "make_classifier: '{}' is no classifier that ends in a linear layer: change it by "
                    "onnx::import_onnx(file).replace(...) in a program of your own",
                    file);
  const std::vector<std::string> picture = net.inputs()[0].shape;
  for (std::size_t d = 2; d < picture.size(); ++d) {
    const int64_t size = std::atoll(picture[d].c_str());
    check<ValueError>(
        size == 0 || size == options.image_size,
        "make_classifier: '{}' takes pictures of {} pixels a side, not {}: set the image size to it", file,
        size, options.image_size);
  }
  if (before != classes) {
    const int64_t features = net.state_dict().at(head + ".weight").numel() / before;
    net.replace(head, nn::Linear{{.in_features = features, .out_features = classes}});
  }
  return nn::Sequential{std::move(net)};
}

}  // namespace

Classifier make_classifier(const std::string& model, models::ClassifierOptions options,
                           std::vector<std::string> class_names, std::vector<double> mean,
                           std::vector<double> std) {
  const auto classes = static_cast<std::size_t>(options.num_classes.get());
  const auto channels = static_cast<std::size_t>(options.in_channels);
  check<ValueError>(class_names.size() == classes, "make_classifier: {} classes need as many names, got {}",
                    classes, class_names.size());
  check<ValueError>(mean.size() == channels && std.size() == channels,
                    "make_classifier: {} channels need as many means and standard deviations, got {} and {}",
                    channels, mean.size(), std.size());
  if (model.ends_with(".onnx"))
    return {std::filesystem::absolute(model).string(),
            options,
            std::move(class_names),
            std::move(mean),
            std::move(std),
            from_onnx(model, options)};
  return {model,           options,        std::move(class_names),
          std::move(mean), std::move(std), models::make_classifier(model, options)};
}

void write_classifier(const std::filesystem::path& file, const Classifier& c, const Metadata& more) {
  Metadata metadata = metadata_of(c);
  metadata.insert(more.begin(), more.end());
  io::write_safetensors(file, c.net.state_dict(), metadata);
}

void export_classifier(const std::filesystem::path& file, Classifier& c) {
  const Tensor weight = c.net.parameters().front();
  const auto channels = [&](const std::vector<double>& values) {
    return from_vector(values, {std::ssize(values), 1, 1}, weight.device()).to(float32);
  };
  const Tensor mean = channels(c.mean), std = channels(c.std);
  const auto function = [&](const std::vector<Tensor>& in) {
    const Tensor x = (in[0].to(float32) / 255 - mean) / std;
    return std::vector<Tensor>{c.net(x.to(weight.dtype()))};
  };
  const Tensor example = zeros({1, c.options.in_channels, c.options.image_size, c.options.image_size},
                               {.dtype = uint8, .device = weight.device()});
  onnx::export_onnx(file, c.net, {example}, function,
                    {.input_names = {"image"}, .output_names = {"logits"}, .metadata = metadata_of(c)});
}

Classifier read_classifier(const std::filesystem::path& file) {
  const std::string where = fmt::format("read_classifier: '{}'", file.string());
  const io::SafetensorsContent content = io::read_safetensors(file);
  const Metadata& metadata = content.metadata;
  auto class_names = json_entry<std::vector<std::string>>(where, metadata, "class_names");
  const models::ClassifierOptions options{.num_classes = static_cast<int64_t>(class_names.size()),
                                          .in_channels = json_entry<int64_t>(where, metadata, "in_channels"),
                                          .image_size = json_entry<int64_t>(where, metadata, "image_size")};
  Classifier classifier = make_classifier(entry(where, metadata, "model"), options, std::move(class_names),
                                          json_entry<std::vector<double>>(where, metadata, "mean"),
                                          json_entry<std::vector<double>>(where, metadata, "std"));
  classifier.net.load_state_dict(content.tensors);
  return classifier;
}

data::ImageFolderOptions pictures_of(const models::ClassifierOptions& options) {
  return {.channels = options.in_channels, .resize = options.image_size, .crop = options.image_size};
}

std::vector<ClassProbability> classify(Classifier& classifier, const std::filesystem::path& picture) {
  const NoGrad off_the_tape;
  const Device device = classifier.net.parameters().front().device();
  const Tensor pixels = data::read_picture(picture, pictures_of(classifier.options));
  data::Batch batch{unsqueeze(pixels, 0), {}};
  classifier.normalization()(batch, data::SampleRandom(0, 0, {}, 0));
  const nn::ModeScope scope(classifier.net, nn::Mode::evaluation);
  const Tensor probabilities = softmax(classifier.net(batch.inputs.to(device)).to(float32), 1);
  const std::vector<float> values = probabilities.to_vector<float>();
  std::vector<ClassProbability> classes;
  for (std::size_t i = 0; i < values.size(); ++i) classes.push_back({classifier.class_names[i], values[i]});
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  return classes;
}

}  // namespace pleat::train
