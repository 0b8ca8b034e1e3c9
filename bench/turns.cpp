// Pleat's side of bench/compare_torch.py, which takes turns with it: reads lines of words from standard input
// and answers each with one line.
//   versions                          what it runs on
//   prepare OPERATION key=value ...   makes the operands: "ready"
//   time N                            runs the prepared operation N times: milliseconds of one, on a GPU
//                                     between events of the device, on the CPU by the clock of --clock
// What goes wrong is answered by "error: ...".
//
// OPERATION   pass
// conv        forward, backward_input, backward_weight: by the raw functions of ops/conv/
// norm        forward, backward: batch norm in training
// unfold      unfold, fold, forward (unfold, matmul, fold: a convolution written by hand), backward (of that)
// step        a training step of a network for images of 32 x 32 pixels
//
// Keys: input=128,64,32,32 weight=64,64,3,3 stride=1,1 padding=1,1 dilation=1,1 groups=1 pass=forward
// format=contiguous|channels_last implementation=NAME tuned=1; of a step model=resnet20 batch=128 format=...
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "cifar_models.h"
#include "device.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

#include "pleat/examples/common/options.h"
#include "pleat/examples/common/program.h"

using namespace pleat;

namespace {

/// The words of a `prepare`.
class Request {
 public:
  explicit Request(std::istream& words) {
    words >> operation;
    for (std::string word; words >> word;) {
      const auto equals = word.find('=');
      values_[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
    }
  }

  std::string text(const std::string& key, const std::string& otherwise = {}) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }
  std::vector<int64_t> numbers(const std::string& key, const std::string& otherwise = {}) const {
    std::vector<int64_t> result;
    std::istringstream parts(text(key, otherwise));
    for (std::string part; std::getline(parts, part, ',');) result.push_back(std::stoll(part));
    return result;
  }
  MemoryFormat format() const {
    return text("format") == "channels_last" ? MemoryFormat::channels_last : MemoryFormat::contiguous;
  }

  std::string operation;

 private:
  std::map<std::string, std::string> values_;
};

using Work = std::function<void()>;

Tensor random_numbers(const Shape& shape, Device device, MemoryFormat format = MemoryFormat::contiguous) {
  return ops::to_format(randn(shape, {.device = device}), format);
}

/// In the format in which the result came, as training would have it.
Tensor gradient_for(const Tensor& y) { return random_numbers(y.shape(), y.device(), y.memory_format()); }

[[noreturn]] void no_such_pass(const Request& request) {
  throw ValueError("turns: " + request.operation + " has no pass \"" + request.text("pass") + "\"");
}

Work conv_work(const Request& request, Device device) {
  const ConvOptions options{.stride = request.numbers("stride", "1"),
                            .padding = request.numbers("padding", "0"),
                            .dilation = request.numbers("dilation", "1"),
                            .groups = request.numbers("groups", "1")[0],
                            .implementation = request.text("implementation")};
  const ConvPolicyOptions policy{.benchmark = request.text("tuned") == "1"};
  const Tensor x = random_numbers(request.numbers("input"), device, request.format());
  const Tensor w = random_numbers(request.numbers("weight"), device, request.format());
  const std::string pass = request.text("pass");
  if (pass == "forward")
    return [=] {
      const ConvPolicy guard{policy};
      (void)ops::conv_forward(x, w, {}, options);
    };
  const Tensor dy = gradient_for(ops::conv_forward(x, w, {}, options));
  if (pass == "backward_input")
    return [=] {
      const ConvPolicy guard{policy};
      (void)ops::conv_backward_input(dy, w, x.shape(), options);
    };
  if (pass == "backward_weight")
    return [=] {
      const ConvPolicy guard{policy};
      (void)ops::conv_backward_weight(dy, x, w.shape(), options);
    };
  no_such_pass(request);
}

/// A differentiable function of `inputs` forward alone, or backward alone to all of them.
Work differentiable_work(const Request& request, const std::vector<Tensor>& inputs,
                         const std::function<Tensor()>& function) {
  const std::string pass = request.text("pass");
  if (pass == "forward")
    return [=] {
      const NoGrad guard;
      (void)function();
    };
  if (pass != "backward") no_such_pass(request);
  const Tensor y = function();
  const Tensor dy = gradient_for(y);
  return [=] { (void)grad({y}, inputs, {dy}, {.retain_graph = true}); };
}

Work norm_work(const Request& request, Device device) {
  const Shape shape = request.numbers("input");
  const Tensor x = random_numbers(shape, device, request.format()).set_requires_grad();
  const Tensor weight = ones({shape.at(1)}, {.device = device}).set_requires_grad();
  const Tensor bias = zeros({shape.at(1)}, {.device = device}).set_requires_grad();
  const BatchNormOptions options{.training = true, .implementation = request.text("implementation")};
  return differentiable_work(request, {x, weight, bias},
                             [=] { return batch_norm(x, weight, bias, {}, {}, options); });
}

Work unfold_work(const Request& request, Device device) {
  const Shape size = request.numbers("input"), taps = request.numbers("weight");
  const int64_t kernel = taps.at(2), padding = request.numbers("padding", "0")[0];
  const UnfoldOptions windows{.kernel_size = kernel, .padding = padding};
  const Shape image(size.begin() + 2, size.end());
  Shape result = image;
  for (int64_t& length : result) length += 2 * padding - kernel + 1;
  const Tensor x = random_numbers(size, device).set_requires_grad();
  const std::string pass = request.text("pass");
  if (pass == "unfold") return [=] { (void)ops::unfold(x, windows); };
  if (pass == "fold")
    return [=, columns = ops::unfold(x, windows)] { (void)ops::fold(columns, image, windows); };
  const Tensor w = reshape(random_numbers(taps, device), {taps[0], -1}).detach().set_requires_grad();
  return differentiable_work(request, {x, w},
                             [=] { return fold(matmul(w, unfold(x, windows)), result, {.kernel_size = 1}); });
}

Work step_work(const Request& request, Device device) {
  struct State {
    nn::Sequential net;
    optim::SGD sgd;
  };
  manual_seed(1);
  nn::Sequential net = make_model(request.text("model"), 10);
  net.to(device);
  const auto state = std::make_shared<State>(State{
      net,
      optim::SGD{net.parameters(), {.lr = 1e-3, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true}}});
  const int64_t batch = request.numbers("batch", "128")[0];
  const Tensor images = random_numbers({batch, 3, 32, 32}, device, request.format());
  const Tensor labels = randint(0, 10, {batch}, device);
  return [=] {
    const Tensor loss = cross_entropy(state->net(images), labels);
    state->sgd.zero_grad();
    loss.backward();
    state->sgd.step();
  };
}

Work work_of(const Request& request, Device device) {
  if (request.operation == "conv") return conv_work(request, device);
  if (request.operation == "norm") return norm_work(request, device);
  if (request.operation == "unfold") return unfold_work(request, device);
  if (request.operation == "step") return step_work(request, device);
  throw ValueError("turns: there is no operation \"" + request.operation + "\"");
}

std::string versions(Device device) {
  std::ostringstream text;
  text << describe(device);
  if (device.is_cuda()) {
    const cuda::Versions v = cuda::versions();
    text << ", CUDA runtime " << v.runtime << ", driver " << v.driver << ", cuBLAS " << v.cublas << ", cuDNN "
         << v.cudnn;
  }
  return text.str();
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

class Session {
 public:
  Session(Device device, std::shared_ptr<benchmark::Clock> clock)
      : device_(device), clock_(std::move(clock)) {}

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "versions") return versions(device_);
    if (command == "prepare") {
      work_ = {};  // its memory first
      work_ = work_of(Request(words), device_);
      return "ready";
    }
    if (command == "time") {
      int64_t runs = 0;
      if (!(words >> runs) || runs < 1) throw ValueError("turns: time: needs a number of runs, at least 1");
      return std::to_string(milliseconds(runs));
    }
    throw ValueError("turns: there is no command \"" + command + "\"");
  }

 private:
  double milliseconds(int64_t runs) const {
    if (!work_) throw ValueError("turns: time: nothing was prepared");
    clock_->start();
    for (int64_t i = 0; i < runs; ++i) work_();
    const benchmark::Clock::Elapsed elapsed = clock_->stop();
    return 1e3 * elapsed.device.value_or(elapsed.wall) / static_cast<double>(runs);
  }

  Device device_;
  std::shared_ptr<benchmark::Clock> clock_;
  Work work_;
};

void run(const std::string& device_name, const std::string& precision, const std::string& clock,
         int threads) {
  const Device device = choose_device(device_name);
  set_float32_precision(precision == "high" ? Precision::high : Precision::highest);
  if (threads > 0) set_num_threads(threads);
  Session session(
      device, clock == "processor" ? std::make_shared<ProcessorClock>() : benchmark::device_clock(device));
  for (std::string line; std::getline(std::cin, line);) {
    std::string reply;
    try {
      reply = session.answer(line);
    } catch (const std::exception& error) {
      reply = std::string("error: ") + error.what();
      for (char& c : reply)
        if (c == '\n') c = ' ';
    }
    print("%s\n", reply.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string device_name = "auto";
  std::string precision = "highest";
  std::string clock = "wall";
  int threads = 0;
  CLI::App app{"Times operations for bench/compare_torch.py; the head of its source says what it reads.",
               "turns"};
  app.add_option("--device", device_name)->capture_default_str();
  app.add_option("--precision", precision)->check(CLI::IsMember({"highest", "high"}))->capture_default_str();
  app.add_option("--clock", clock, "on the CPU")
      ->check(CLI::IsMember({"wall", "processor"}))
      ->capture_default_str();
  app.add_option("--threads", threads)->transform(whole_number(1, max_num_threads()));
  return run_program(app, argc, argv, [&] { run(device_name, precision, clock, threads); });
}
