#include <fstream>
#include <limits>

#include "pleat/core/tensor/create.h"
#include "pleat/data/annotated_pictures.h"
#include "pleat/data/dataset.h"
#include "pleat/data/datasets.h"
#include "pleat/data/image.h"
#include "pleat/data/image_folder.h"
#include "pleat/data/loader.h"
#include "pleat/data/sampler.h"
#include "pleat/data/split.h"
#include "pleat/data/transforms.h"
#include "pleat/io/csv.h"
#include "pleat/io/npy.h"
#include "pleat/io/npz.h"
#include "pleat/io/safetensors.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/errors/mistakes.h"
#include "pleat/train/metrics.h"
#include "pleat/train/step.h"

using namespace pleat;

MistakeSection loss_mistakes() {
  const Tensor logits = ones({4, 10});
  const Tensor labels = tensor({1, 2, 3, 4});
  return {"Losses",
          "`logits = ones({4, 10})`, `labels = tensor({1, 2, 3, 4})`.",
          {
              MISTAKE(cross_entropy(logits, tensor({1, 2, 3, 10}))),
              MISTAKE(cross_entropy(logits, tensor({1, 2, 3, -1}))),
              MISTAKE(cross_entropy(logits, tensor({1, 2}))),
              MISTAKE(cross_entropy(logits, ones({4}))),
              MISTAKE(cross_entropy(labels, logits)),
              MISTAKE(cross_entropy(logits, labels, {.weight = ones({3})})),
              MISTAKE(cross_entropy(logits, labels, {.label_smoothing = 2})),
              MISTAKE(mse_loss(logits, ones({4}))),
              MISTAKE(mse_loss(logits, labels)),
              MISTAKE(smooth_l1_loss(logits, logits, {.beta = -1})),
              MISTAKE(bce_with_logits(logits, labels)),
              MISTAKE(argmax(logits) == labels),
              MISTAKE(argmax(logits, 1) == tensor({1, 2})),
          }};
}

MistakeSection optimizer_mistakes() {
  const nn::Linear net{{.in_features = 3, .out_features = 2}};
  const Tensor x = ones({8, 3});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto mse = [](const Tensor& y, const Tensor& target) { return mse_loss(y, target); };
  return {"Optimisers and schedules",
          "`net` is `nn::Linear{{.in_features = 3, .out_features = 2}}`, `x = ones({8, 3})`, `mse` calls "
          "`mse_loss`.",
          {
              MISTAKE(optim::SGD({}, {.lr = 0.1})),
              MISTAKE(optim::SGD(net.parameters(), {.lr = -0.1})),
              MISTAKE(optim::SGD(net.parameters(), {.lr = nan})),
              MISTAKE(optim::SGD(net.parameters(), {.lr = 0.1, .momentum = 9})),
              MISTAKE(optim::SGD(net.parameters(), {.lr = 0.1, .nesterov = true})),
              MISTAKE(optim::Adam(net.parameters(), {.lr = 0.1, .betas = {0.9, 1.5}})),
              MISTAKE(optim::SGD({net.weight, net.weight}, {.lr = 0.1})),
              MISTAKE(optim::SGD({net.weight * 2}, {.lr = 0.1})),
              MISTAKE(optim::SGD({Tensor()}, {.lr = 0.1})),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}}; sgd.options(3)),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}}; optim::Adam adam{net.parameters(), {}};
                      adam.load_state_dict(sgd.state_dict())),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}}; sgd.step()),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}}; optim::SGD other = std::move(sgd);
                      sgd.step()),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}};
                      optim::Schedule(sgd, optim::StepLR{.step_size = 0})),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}};
                      optim::Schedule(sgd, optim::MultiStepLR{.milestones = {-5}})),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}};
                      optim::Schedule(sgd, optim::OneCycleLR{.max_lr = 0.1, .total_steps = 0})),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}};
                      optim::Schedule(sgd, optim::CosineAnnealingLR{.steps = -10})),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}};
                      optim::Schedule saved(sgd, optim::CosineAnnealingLR{.steps = 100});
                      saved.set_steps(100); optim::Schedule(sgd, optim::CosineAnnealingLR{.steps = 200})
                                                .load_state_dict(saved.state_dict())),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}};
                      optim::Schedule warm_up(sgd, optim::LinearLR{.steps = 5});
                      optim::Schedule decay(sgd, optim::StepLR{.step_size = 30}); warm_up.step()),
              MISTAKE(optim::SGD sgd{net.parameters(), {.lr = 0.1}};
                      optim::Schedule saved(sgd, optim::StepLR{.step_size = 2, .gamma = 0.5});
                      saved.set_steps(2); optim::SGD loaded{net.parameters(), {.lr = 0.1}};
                      optim::Schedule schedule(loaded, optim::StepLR{.step_size = 2, .gamma = 0.5});
                      loaded.load_state_dict(sgd.state_dict()); schedule.step()),
              MISTAKE(nn::Linear line{{.in_features = 3, .out_features = 2}}; line.eval();
                      optim::SGD sgd{line.parameters(), {.lr = 0.1}}; train::Step step(line, sgd, mse);
                      step.run({}, {x, ones({8, 2})})),
              MISTAKE(optim::clip_grad_norm_(net.parameters(), {.max_norm = -1})),
              MISTAKE(optim::clip_grad_norm_({}, {.max_norm = 1})),
          }};
}

MistakeSection data_mistakes() {
  const data::TensorDataset set(ones({10, 3}), arange(10));
  const data::TensorDataset pictures(zeros({4, 3, 32, 32}, uint8), arange(4));
  return {"Data",
          "`set` is `data::TensorDataset(ones({10, 3}), arange(10))`, `pictures` "
          "`data::TensorDataset(zeros({4, 3, 32, 32}, uint8), arange(4))`.",
          {
              MISTAKE(data::TensorDataset(ones({10, 3}), arange(9))),
              MISTAKE(data::TensorDataset(Tensor(), arange(9))),
              MISTAKE(data::DataLoader(set, {.batch_size = 0})),
              MISTAKE(data::DataLoader(data::TensorDataset(ones({0, 3})), {.batch_size = 2})),
              MISTAKE(data::DataLoader(set, {.batch_size = 16, .drop_last = true})),
              MISTAKE(data::DataLoader(set, {.workers = -1})),
              MISTAKE(data::DataLoader(set, {.workers = 100000})),
              MISTAKE(data::DataLoader(set, {.prefetch = 0})),
              MISTAKE(const std::vector<int64_t> indices = {10}; set.get(indices)),
              MISTAKE(data::Subset(set, {10})),
              MISTAKE(data::random_split(set, {0.8, 0.1})),
              MISTAKE(data::random_split(set, {9, 2})),
              MISTAKE(data::random_split(pictures, {0.9, 0.1})),
              MISTAKE(data::k_folds(set, 20)),
              MISTAKE(data::weighted_random_sampler({1, -1}, 2)),
              MISTAKE(const auto sampler = data::weighted_random_sampler({1, 1}, 2);
                      data::DataLoader(set, {.shuffle = true, .sampler = sampler})),
              MISTAKE(train::ConfusionMatrix matrix(3); matrix.add(ones({2, 3}), tensor({1, 3}, int64))),
              MISTAKE(train::RegressionScore score; score.add(ones({2, 1}), ones({2}))),
              MISTAKE(data::normalize({0.5}, {0})),
              MISTAKE(data::normalize({0.5, 0.5}, {1})),
              MISTAKE(const auto t = data::normalize({0.5}, {0.2});
                      data::DataLoader(pictures, {.transforms = {t}}).begin()),
              MISTAKE(const auto t = data::normalize({124, 116, 104}, {58, 57, 57});
                      data::DataLoader(pictures, {.transforms = {t}}).begin()),
              MISTAKE(data::random_horizontal_flip(2)),
              MISTAKE(data::mixup(-1, 10)),
              MISTAKE(data::cutout(-3)),
              MISTAKE(data::random_affine({.scale = {1.2, 0.8}})),
              MISTAKE(data::random_resized_crop({.size = 224, .area = {8, 100}})),
          }};
}

namespace {

void write(const char* path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

}  // namespace

MistakeSection file_mistakes() {
  write("page.safetensors", "<!DOCTYPE html><html><body>Not found</body></html>");
  write("model.pt",
        std::string("PK\x03\x04") + std::string(26, '\0') + "archive/data.pkl" + std::string(100, 'x'));
  write("empty.npy", "");
  write("notes.npy", "hello, this is no array at all, but a text of some length");
  write("data_batch_1.bin", std::string(100, 'x'));
  write("ragged.csv", "name,age\nAnn,31\nBob,27,x\n");
  write("ages.csv", "name,age\nAnn,31\nBob,\nCid,old\n");
  write("half.png", "\x89PNG\r\n\x1a\n");
  io::write_npy("ones.npy", ones({8, 8}));
  return {"Files",
          "`page.safetensors` is a web page, `model.pt` a file of PyTorch, `empty.npy` is empty, "
          "`ragged.csv` has a line of three cells, `ages.csv` an empty one and the age \"old\", "
          "`ones.npy` holds `ones({8, 8})`, `half.png` breaks off, `notes.npy` is a text and "
          "`data_batch_1.bin` 100 "
          "bytes long.",
          {
              MISTAKE(io::read_safetensors("weights.safetensors")),
              MISTAKE(io::read_safetensors("page.safetensors")),
              MISTAKE(io::read_safetensors("model.pt")),
              MISTAKE(io::read_safetensors(".")),
              MISTAKE(io::read_npy("empty.npy")),
              MISTAKE(io::read_npy("ones.npy", {.memory_limit = 100})),
              MISTAKE(io::read_npy("notes.npy")),
              MISTAKE(io::read_npy("model.pt")),
              MISTAKE(io::read_npz("notes.npy")),
              MISTAKE(io::write_safetensors("no/such/folder/weights.safetensors", {{"w", ones({2})}})),
              MISTAKE(io::write_safetensors("weights.safetensors", {{"w", Tensor()}})),
              MISTAKE(io::read_csv("ragged.csv")),
              MISTAKE(io::read_csv("ages.csv").column("age")),
              MISTAKE(io::read_csv("ages.csv").column("weight")),
              MISTAKE(io::read_csv("ages.csv", {.dtype = {{"age", io::ColumnType::int64}}})),
              MISTAKE(io::read_csv("ages.csv").factorize("name", {"Ann", "Bob"})),
              MISTAKE(data::DetectionFolder(".", "ages.csv")),
              MISTAKE(data::read_image("half.png")),
              MISTAKE(data::read_image("notes.npy")),
              MISTAKE(data::read_idx("notes.npy")),
              MISTAKE(data::read_cifar10(".", true)),
              MISTAKE(data::ImageFolder("images")),
              MISTAKE(data::ImageFolder(".")),
          }};
}
