// The same training with what a run of hours needs: it goes on after a stop, and leaves a report.
#include <iostream>

#include "shapes.h"

int main(int argc, char** argv) {
  const int64_t epochs = 12;
  const int64_t last_epoch = argc > 1 ? std::stoll(argv[1]) : epochs;  // of this run
  std::filesystem::create_directories("run");
  manual_seed(1);
  data::DataLoader train_loader = make_loader("train", true);
  data::DataLoader test_loader = make_loader("test", false);
  ShapeNet net;
  optim::Adam adam{net.parameters(), {.lr = 3e-3}};
  optim::Schedule schedule{adam, optim::CosineAnnealingLR{.steps = epochs * train_loader.size()}};
  train::ClassificationScore score;
  train::MetricLog log{"run/metrics.csv"};

  train::Checkpoints checkpoints{"run/checkpoints", {.keep = 2, .maximize = true}};
  checkpoints.add("model", net);
  checkpoints.add("optimizer", adam);
  checkpoints.add("schedule", schedule);
  checkpoints.add("loader", train_loader);
  checkpoints.add("score", score);
  checkpoints.add("metrics", log);
  if (const auto latest = train::latest_checkpoint("run/checkpoints")) {
    checkpoints.load(*latest);
    std::cout << "going on after epoch " << log.rows() << '\n';
  }

  train::StopOnSignal stop;
  train::Step step{net, adam, [](const Tensor& y, const Tensor& target) { return cross_entropy(y, target); }};
  while (train_loader.epoch() < last_epoch) {
    const int64_t epoch = train_loader.epoch() + 1;
    for (const data::Batch& batch : train_loader) {
      step.run({.epoch = epoch, .step = train_loader.batch(), .lr = adam.lr()}, batch);
      schedule.step();
      score.add(step.loss(), step.output(), batch.targets);
      if (stop.requested()) {
        checkpoints.save({.step = (epoch - 1) * train_loader.size() + train_loader.batch()});
        return 130;  // the checkpoint is on disk when its destructor has run
      }
    }
    step.finish();
    const train::ClassificationScore test = train::evaluate(net, test_loader, epoch);
    log.add({{"epoch", epoch},
             {"train_loss", score.loss()},
             {"train_accuracy", score.accuracy()},
             {"test_loss", test.loss()},
             {"test_accuracy", test.accuracy()}});
    score = {};
    checkpoints.save({.step = epoch * train_loader.size(), .metric = test.accuracy()});
    std::cout << "epoch " << epoch << "  test accuracy " << test.accuracy() << std::endl;
  }

  io::write_safetensors("run/weights.safetensors", net.state_dict());

  const data::TensorDataset pictures = data::in_memory(ShapePictures("shapes/test"));
  train::Classifier classifier{.model = "ShapeNet",
                               .options = {.num_classes = 3, .in_channels = 1},
                               .class_names = class_names,
                               .mean = {0.36},
                               .std = {0.18},
                               .net = nn::Sequential{net}};
  train::write_report("run/report.html", classifier,
                      {.title = "Shapes",
                       .log = &log,
                       .predictions = train::predict_classes(net, test_loader),
                       .images = &pictures,
                       .layers = train::time_layers(net, zeros({50, 1, 32, 32}))});
}
