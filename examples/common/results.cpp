#include "results.h"

#include "program.h"

using namespace pleat;
using namespace pleat::train;
namespace fs = std::filesystem;

namespace {
constexpr int64_t most_timed = 32;  // pictures with which the layers of the report are timed
}

Results::Results(const CifarSettings& s, bool writes)
    : settings_(s),
      folder_(s.output),
      log_(folder_ / s.metrics),
      checkpoints_(folder_ / s.checkpoints, {.keep = s.keep_checkpoints,
                                             .maximize = true,
                                             .seconds = s.checkpoint_seconds,
                                             .metadata = {{"options", s.given}}}) {
  checkpoints_.add("metrics", log_);
  made_room_ = !s.resume.empty();
  if (!writes) return;
  own_folder_.emplace(folder_, std::vector<std::string>{s.metrics, s.weights, s.curves, s.options, s.report,
                                                        s.checkpoints, s.tensorboard});
  if (const std::string notice = own_folder_->notice(); !made_room_ && !notice.empty()) print_text(notice);
}

void Results::start() {
  if (settings_.resume.empty()) return;
  const auto latest = latest_checkpoint(checkpoints_.folder());
  if (!latest) throw UsageError("--resume " + settings_.resume + ": there is no checkpoint in this folder");
  for (const std::string& problem : latest->damaged) print_text("passed over: " + problem);
  checkpoints_.load(*latest);
  print_text("going on from " + latest->file.string() + ", after step " + std::to_string(latest->step));
}

void Results::make_room() {
  if (made_room_) return;
  own_folder_->make_room();
  made_room_ = true;
}

void Results::save(int64_t step, std::optional<double> accuracy) {
  make_room();
  checkpoints_.save({.step = step, .metric = accuracy});
}

void Results::add(int64_t epoch, const EpochResult& r, const Classifier& classifier) {
  make_room();
  if (!board_) {
    write_file("options", folder_ / settings_.options, settings_.given);
    board_.emplace(folder_ / settings_.tensorboard, TensorBoardOptions{.first_step = epoch});
  }
  const MetricLog::Row row{{"epoch", static_cast<double>(epoch)},   {"train_loss", r.train.loss()},
                           {"train_accuracy", r.train.accuracy()},  {"test_loss", r.test.loss()},
                           {"test_accuracy", r.test.accuracy()},    {"learning_rate", r.learning_rate},
                           {"images_per_s", r.images_per_second()}, {"seconds", r.seconds}};
  log_.add(row);
  for (const auto& [name, value] : row)
    if (name != "epoch") board_->scalar(name, value, epoch);
  for (const auto& [name, parameter] : classifier.net.named_parameters())
    if (parameter.rank() > 1) board_->histogram(name, parameter, epoch);
  if (epochs_since_best() == 0)
    write_classifier(folder_ / settings_.weights, classifier, {{"epoch", std::to_string(epoch)}});
  draw();
}

std::size_t Results::best() const {
  const auto &accuracy = log_["test_accuracy"], &loss = log_["test_loss"];
  std::size_t best = 0;
  for (std::size_t i = 1; i < accuracy.size(); ++i)
    if (accuracy[i] > accuracy[best] || (accuracy[i] == accuracy[best] && loss[i] < loss[best])) best = i;
  return best;
}

int64_t Results::epochs_since_best() const {
  return log_.rows() == 0 ? 0 : static_cast<int64_t>(log_.rows() - 1 - best());
}

void Results::draw() const {
  const auto curve = [&](const char* name, const char* figure) { return plot::Curve{name, log_[figure]}; };
  plot::write_learning_curves(
      folder_ / settings_.curves,
      settings_.model + ", " + settings_.optimizer + ", batch " + std::to_string(settings_.batch_size),
      {curve("training", "train_loss"), curve("test", "test_loss")},
      {curve("training", "train_accuracy"), curve("test", "test_accuracy")});
}

void Results::report(const data::TensorDataset& images,
                     const std::function<data::DataLoader(const Classifier&)>& tests, Device device) {
  Classifier classifier = read_classifier(folder_ / settings_.weights);
  classifier.net.to(device);
  data::DataLoader loader = tests(classifier);
  const int64_t size = settings_.image_size;
  const Tensor batch = zeros({std::min<int64_t>(settings_.batch_size, most_timed), 3, size, size}, device);
  std::string command = "train_cifar";
  for (const auto& [name, value] : settings_.arguments)
    command += " --" + name + (value == "true" ? "" : ' ' + value);
  const std::string data =
      settings_.data.empty() ? "synthetic shapes" : fs::absolute(settings_.data).filename().string();
  write_report(folder_ / settings_.report, classifier,
               {.title = settings_.model + " on " + data,
                .command = command + " --output NEW_FOLDER",
                .options = settings_.arguments,
                .log = &log_,
                .predictions = predict_classes(classifier.net, loader),
                .images = &images,
                .layers = time_layers(classifier.net, batch)});
}

void Results::conclude() {
  checkpoints_.wait();
  const auto& accuracy = log_["test_accuracy"];
  print_text("test accuracy " + number(100 * accuracy.back(), 2) +
             " %; metrics, checkpoints and the weights of epoch " + std::to_string(best() + 1) + " (" +
             number(100 * accuracy[best()], 2) + " %) are in " + settings_.output);
}
