// Times single operations, on demand: bench/compare_ops.py drives it in turns with PyTorch. It reads lines of
// words and answers each with one line:
//   prepare OPERATION key=value ...   makes operands and runs the operation until it is warm: "ready"
//   time                              milliseconds of the prepared operation, the mean of some runs in a row
//   versions                          what it runs on
// What goes wrong is answered by "error: ...". Time is taken by events of the device, on the CPU by a steady
// clock.
//
// OPERATION is conv (pass=forward|backward_input|backward_weight|backward), norm (pass=forward|backward) or
// copy. Keys:
//   input=128,64,32,32 weight=64,64,3,3 stride=1,1 padding=1,1 dilation=1,1 groups=1 implementation=cudnn
//   tuned=1 format=contiguous|channels_last, and of norm after=NAME: its input comes from that convolution
//   implementation
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "device.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

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
  std::vector<int64_t> numbers(const std::string& key, const std::string& otherwise) const {
    std::vector<int64_t> result;
    std::istringstream parts(text(key, otherwise));
    for (std::string part; std::getline(parts, part, ',');) result.push_back(std::stoll(part));
    return result;
  }

  std::string operation;

 private:
  std::map<std::string, std::string> values_;
};

using Work = std::function<void()>;

Tensor numbers(const Shape& shape, Device device, MemoryFormat format) {
  return ops::to_format(randn(shape, {.device = device}), format);
}

MemoryFormat format_of(const Request& request) {
  return request.text("format") == "channels_last" ? MemoryFormat::channels_last : MemoryFormat::contiguous;
}

ConvOptions conv_options(const Request& request) {
  return {.stride = request.numbers("stride", "1"),
          .padding = request.numbers("padding", "0"),
          .dilation = request.numbers("dilation", "1"),
          .groups = request.numbers("groups", "1")[0],
          .implementation = request.text("implementation")};
}

/// With the tuner, where it is asked for: the fastest plan of the implementation, found when first used.
ConvPolicyOptions conv_policy(const Request& request) { return {.benchmark = request.text("tuned") == "1"}; }

Work conv_work(const Request& request, Device device) {
  const ConvOptions options = conv_options(request);
  const ConvPolicyOptions policy = conv_policy(request);
  const Tensor x = numbers(request.numbers("input", ""), device, format_of(request));
  const Tensor w = numbers(request.numbers("weight", ""), device, format_of(request));
  const std::string pass = request.text("pass", "forward");
  if (pass == "forward")
    return [=] {
      const ConvPolicy guard{policy};
      (void)ops::conv_forward(x, w, {}, options);
    };
  const Tensor y = ops::conv_forward(x, w, {}, options);
  const Tensor dy = ops::to_format(randn(y.shape(), {.device = device}), y.memory_format());
  const bool input = pass != "backward_weight";
  const bool weight = pass != "backward_input";
  return [=] {
    const ConvPolicy guard{policy};
    if (input) (void)ops::conv_backward_input(dy, w, x.shape(), options);
    if (weight) (void)ops::conv_backward_weight(dy, x, w.shape(), options);
  };
}

Work norm_work(const Request& request, Device device) {
  const Shape shape = request.numbers("input", "");
  Tensor x = numbers(shape, device, format_of(request));
  if (const std::string after = request.text("after"); !after.empty())
    x = ops::conv_forward(x, numbers({shape[1], shape[1], 3, 3}, device, format_of(request)), {},
                          {.padding = 1, .implementation = after});
  x = x.detach().set_requires_grad();
  const Tensor weight = ones({shape[1]}, {.device = device}).set_requires_grad();
  const Tensor bias = zeros({shape[1]}, {.device = device}).set_requires_grad();
  const BatchNormOptions options{.training = true, .implementation = request.text("implementation")};
  const auto forward = [=] { return batch_norm(x, weight, bias, {}, {}, options); };
  if (request.text("pass", "forward") == "forward")
    return [=] {
      const NoGrad guard;
      (void)forward();
    };
  const Tensor y = forward();
  const Tensor dy = ops::to_format(randn(shape, {.device = device}), y.memory_format());
  return [=] { (void)grad({y}, {x, weight, bias}, {dy}, {.retain_graph = true}); };
}

Work copy_work(const Request& request, Device device) {
  const Tensor from = randn(request.numbers("input", ""), {.device = device});
  const Tensor to = empty(from.shape(), {.device = device});
  return [=] { ops::copy_into(to, from); };
}

Work work_of(const Request& request, Device device) {
  if (request.operation == "conv") return conv_work(request, device);
  if (request.operation == "norm") return norm_work(request, device);
  if (request.operation == "copy") return copy_work(request, device);
  throw ValueError("op_times: there is no operation \"" + request.operation + "\"");
}

double milliseconds(const Work& work, Device device, int runs) {
  if (device.is_cpu()) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / runs;
  }
  const cuda::Event start({.device = device, .timing = true});
  const cuda::Event end({.device = device, .timing = true});
  start.record();
  for (int i = 0; i < runs; ++i) work();
  end.record();
  end.synchronize();
  return cuda::elapsed_ms(start, end) / runs;
}

class Timer {
 public:
  explicit Timer(Device device) : device_(device) {}

  void prepare(const Request& request) {
    work_ = {};  // its memory first
    work_ = work_of(request, device_);
    for (int i = 0; i < 3; ++i) work_();  // the first one plans, tunes and allocates
    const double once = milliseconds(work_, device_, 1);
    runs_ = once > 5 ? 1 : once < 0.05 ? 100 : static_cast<int>(5 / once) + 1;
  }
  double time() const {
    if (!work_) throw ValueError("op_times: nothing was prepared");
    return milliseconds(work_, device_, runs_);
  }

 private:
  Device device_;
  Work work_;
  int runs_ = 1;
};

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

std::string answer(const std::string& line, Device device, Timer& timer) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  if (command == "versions") return versions(device);
  if (command == "prepare") {
    timer.prepare(Request(words));
    return "ready";
  }
  if (command == "time") return std::to_string(timer.time());
  throw ValueError("op_times: there is no command \"" + command + "\"");
}

}  // namespace

int main(int argc, char** argv) {
  std::string device_name = "auto";
  std::string precision = "highest";
  int threads = 0;
  CLI::App app{"Times single operations; reads what to do from standard input (see the head of its source)."};
  app.add_option("--device", device_name)->capture_default_str();
  app.add_option("--precision", precision)->check(CLI::IsMember({"highest", "high"}))->capture_default_str();
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    const Device device = choose_device(device_name);
    set_float32_precision(precision == "high" ? Precision::high : Precision::highest);
    if (threads > 0) set_num_threads(threads);
    Timer timer(device);
    for (std::string line; std::getline(std::cin, line);) {
      std::string reply;
      try {
        reply = answer(line, device, timer);
      } catch (const std::exception& error) {
        reply = std::string("error: ") + error.what();
        for (char& c : reply)
          if (c == '\n') c = ' ';
      }
      std::cout << reply << std::endl;
    }
  } catch (const std::exception& error) {
    std::cerr << "op_times: " << error.what() << '\n';
    return 1;
  }
}
