// Pleat's side of bench/compare_torch.py, which lets two processes alternate: reads lines of words from
// standard input and writes a line for each: what went wrong is "error: ...".
//   versions                          what it runs on
//   time N                            runs what was prepared N times: milliseconds of one, on a GPU between
//                                     events of the device, on the CPU by the clock of --clock
//   prepare OPERATION key=value ...   makes the operands: "ready". Operations and their passes:
//     conv     forward, backward_input, backward_weight, by the raw functions of ops/conv/
//     norm     forward, backward: batch norm in training
//     unfold   unfold, fold, forward (unfold, matmul, fold: a convolution written by hand), backward (of
//     that) step     a training step of a network for images of 32 x 32 pixels
//   Keys: input=128,64,32,32 weight=64,64,3,3 stride=1,1 padding=1,1 dilation=1,1 groups=1 pass=forward
//   format=contiguous|channels_last implementation=NAME tuned=1; of a step model=resnet20 batch=128
//   format=...
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/machine.h"
#include "pleat/bench/training_step.h"
#include "pleat/examples/common/device.h"
#include "pleat/examples/common/options.h"
#include "pleat/examples/common/program.h"

using namespace pleat;
using bench::ask::gradient_for;

namespace {

using Work = std::function<void()>;

/// The words of a `prepare`.
class Request {
 public:
  explicit Request(std::istream& words) {
    words >> operation;
    for (std::string word; words >> word;) {
      const auto equals = std::min(word.find('='), word.size() - 1);
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }

  std::string text(const std::string& key, const std::string& otherwise = {}) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }
  std::vector<int64_t> numbers(const std::string& key, const std::string& otherwise) const {
    std::vector<int64_t> result;
    for (const std::string& part : ::split(text(key, otherwise))) result.push_back(std::stoll(part));
    return result;
  }
  /// Standard normal numbers in a shape and the request's format.
  Tensor tensor(const std::string& key, Device device) const {
    const bool last = text("format") == "channels_last";
    return ops::to_format(randn(numbers(key, ""), {.device = device}),
                          last ? MemoryFormat::channels_last : MemoryFormat::contiguous);
  }

  std::string operation;

 private:
  std::map<std::string, std::string> values_;
};

[[noreturn]] void no_such_pass(const Request& request) {
  throw ValueError("timing_server: " + request.operation + " has no pass \"" + request.text("pass") + "\"");
}

Work conv_work(const Request& request, Device device) {
  const ConvOptions options{.stride = request.numbers("stride", "1"),
                            .padding = request.numbers("padding", "0"),
                            .dilation = request.numbers("dilation", "1"),
                            .groups = request.numbers("groups", "1")[0],
                            .implementation = request.text("implementation")};
  const ConvPolicyOptions policy{.benchmark = request.text("tuned") == "1"};
  const Tensor x = request.tensor("input", device), w = request.tensor("weight", device);
  const auto forward = [=] { return ops::conv_forward(x, w, {}, options); };
  const std::string pass = request.text("pass");
  const Tensor dy = pass == "forward" ? Tensor() : gradient_for(forward());
  std::function<Tensor()> work = forward;
  if (pass == "backward_input")
    work = [=] { return ops::conv_backward_input(dy, w, x.shape(), options); };
  else if (pass == "backward_weight")
    work = [=] { return ops::conv_backward_weight(dy, x, w.shape(), options); };
  else if (pass != "forward")
    no_such_pass(request);
  return [=] {
    const ConvPolicy guard{policy};
    (void)work();
  };
}

/// A differentiable function of `inputs` forward alone, or backward alone to all of them.
Work differentiable_work(const Request& request, const std::vector<Tensor>& inputs,
                         const std::function<Tensor()>& function) {
  const std::string pass = request.text("pass");
  if (pass == "forward") return [=] { (void)no_grad(function); };
  if (pass != "backward") no_such_pass(request);
  const Tensor y = function();
  const Tensor dy = gradient_for(y);
  return [=] { (void)grad({y}, inputs, {dy}, {.retain_graph = true}); };
}

Work norm_work(const Request& request, Device device) {
  const Tensor x = request.tensor("input", device).set_requires_grad();
  const Tensor weight = ones({x.size(1)}, {.device = device}).set_requires_grad();
  const Tensor bias = zeros({x.size(1)}, {.device = device}).set_requires_grad();
  const BatchNormOptions options{.training = true, .implementation = request.text("implementation")};
  return differentiable_work(request, {x, weight, bias},
                             [=] { return batch_norm(x, weight, bias, {}, {}, options); });
}

Work unfold_work(const Request& request, Device device) {
  const Tensor x = request.tensor("input", device).set_requires_grad();
  const Tensor filters = request.tensor("weight", device);
  const int64_t kernel = filters.size(2), padding = request.numbers("padding", "0")[0];
  const UnfoldOptions windows{.kernel_size = kernel, .padding = padding};
  const std::string pass = request.text("pass");
  if (pass == "unfold") return [=] { (void)ops::unfold(x, windows); };
  if (pass == "fold")
    return [=, columns = ops::unfold(x, windows), image = Shape(x.shape().begin() + 2, x.shape().end())] {
      (void)ops::fold(columns, image, windows);
    };
  const Tensor w = flatten(filters, 1).detach().set_requires_grad();
  return differentiable_work(request, {x, w},
                             [=] { return bench::ask::unfold_speed::conv_by_hand(x, w, kernel, padding); });
}

Work step_work(const Request& request, Device device) {
  bench::TrainingStepOptions options{.model = request.text("model"),
                                     .format = request.text("format", "auto")};
  options.batch_size = request.numbers("batch", "128")[0];
  options.device = device;
  const auto step = std::make_shared<bench::TrainingStep>(options);
  step->data();
  return [=] {
    step->forward();
    step->loss();
    step->backward();
    step->optimize();
  };
}

/// Time that the processors spent on this process: other programs take nothing from it.
class ProcessorClock : public benchmark::Clock {
 public:
  void start() override { start_ = std::clock(); }
  Elapsed stop() override { return {static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC, {}}; }
  void empty_caches() override {}

 private:
  std::clock_t start_ = 0;
};

std::string answer(const std::string& line, Device device, benchmark::Clock& clock, Work& work) {
  std::istringstream words(line);
  std::string command;
  int64_t runs = 0;
  words >> command;
  if (command == "versions") return bench::describe_machine(device, 0);
  if (command == "prepare") {
    work = {};  // its memory first
    const Request request(words);
    const auto make = request.operation == "conv"     ? conv_work
                      : request.operation == "norm"   ? norm_work
                      : request.operation == "unfold" ? unfold_work
                      : request.operation == "step"   ? step_work
                                                      : nullptr;
    if (make == nullptr)
      throw ValueError("timing_server: there is no operation \"" + request.operation + '"');
    work = make(request, device);
    return "ready";
  }
  if (command != "time") throw ValueError("timing_server: there is no command \"" + command + "\"");
  if (!(words >> runs) || runs < 1)
    throw ValueError("timing_server: time: needs a number of runs, at least 1");
  if (!work) throw ValueError("timing_server: time: nothing was prepared");
  clock.start();
  for (int64_t i = 0; i < runs; ++i) work();
  const benchmark::Clock::Elapsed elapsed = clock.stop();
  return std::to_string(1e3 * elapsed.device.value_or(elapsed.wall) / static_cast<double>(runs));
}

}  // namespace

int main(int argc, char** argv) {
  std::string device_name = "auto", precision = "highest", clock_name = "wall";
  int threads = 0;
  CLI::App app{"Times operations for bench/compare_torch.py; the head of its source says what it reads.",
               "timing_server"};
  app.add_option("--device", device_name)->capture_default_str();
  app.add_option("--precision", precision)->check(CLI::IsMember({"highest", "high"}))->capture_default_str();
  app.add_option("--clock", clock_name, "on the CPU")
      ->check(CLI::IsMember({"wall", "processor"}))
      ->capture_default_str();
  app.add_option("--threads", threads)->transform(whole_number(1, max_num_threads()));
  return run_program(app, argc, argv, [&] {
    const Device device = choose_device(device_name);
    set_float32_precision(precision == "high" ? Precision::high : Precision::highest);
    if (threads > 0) set_num_threads(threads);
    const auto clock =
        clock_name == "processor" ? std::make_shared<ProcessorClock>() : benchmark::device_clock(device);
    Work work;
    for (std::string line; std::getline(std::cin, line);) {
      std::string reply;
      try {
        reply = answer(line, device, *clock, work);
      } catch (const std::exception& error) {
        reply = std::string("error: ") + error.what();
        std::replace(reply.begin(), reply.end(), '\n', ' ');
      }
      print("%s\n", reply.c_str());
    }
  });
}
