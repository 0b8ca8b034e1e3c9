// Pleat's side of bench/compare_torch.py, which times two processes interleaved. Reads a JSON object from
// each line of standard input and writes one for each: {"result": ...}, or {"error": "..."}.
//   {"command": "versions"}             what it runs on
//   {"command": "time", "runs": N}      runs what was prepared N times: milliseconds of one, on a GPU
//                                       between events of the device, on the CPU by the clock of --clock
//   {"command": "prepare", "section": ...}
//                                       makes the operands. Sections and their passes:
//     conv     forward, backward_input, backward_weight, by the raw functions of ops/conv/
//     norm     forward, backward: batch norm in training
//     unfold   unfold, fold; forward (unfold, matmul, fold: a convolution written by hand), backward of that
//     step     a training step of a network for images of 32 x 32 pixels
//   with "pass", "format" and lists of sizes "input", "weight", "stride", "padding", "dilation"; "groups",
//   "implementation", "tuned"; of a step "model" and "batch".
#include <functional>
#include <iostream>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <pleat/pleat.h>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/case.h"
#include "pleat/bench/machine.h"
#include "pleat/bench/training_step.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/device.h"
#include "pleat/examples/common/options.h"
#include "pleat/examples/common/program.h"

using namespace pleat;
using bench::ask::gradient_for;

namespace {

using Json = nlohmann::json;
using Work = std::function<void()>;  ///< null: there is no such pass
using Numbers = std::vector<int64_t>;

/// Standard normal numbers in the shape of that name and the request's format.
Tensor numbers(const Json& request, const char* name, Device device) {
  return bench::operand(request.at(name).get<Numbers>(), {.format = request.at("format"), .device = device});
}

Work conv_work(const Json& request, Device device) {
  const ConvOptions options{.stride = request.at("stride").get<Numbers>(),
                            .padding = request.at("padding").get<Numbers>(),
                            .dilation = request.at("dilation").get<Numbers>(),
                            .groups = request.at("groups").get<int64_t>(),
                            .implementation = request.value("implementation", "")};
  const ConvPolicyOptions policy{.benchmark = request.value("tuned", false)};
  const Tensor x = numbers(request, "input", device), w = numbers(request, "weight", device);
  const std::string pass = request.at("pass");
  const Tensor dy = pass == "forward" ? Tensor() : gradient_for(ops::conv_forward(x, w, {}, options));
  const std::map<std::string, Work> passes{
      {"forward", [=] { (void)ops::conv_forward(x, w, {}, options); }},
      {"backward_input", [=] { (void)ops::conv_backward_input(dy, w, x.shape(), options); }},
      {"backward_weight", [=] { (void)ops::conv_backward_weight(dy, x, w.shape(), options); }}};
  if (passes.count(pass) == 0) return nullptr;
  return [policy, run = passes.at(pass)] {
    const ConvPolicy guard{policy};
    run();
  };
}

/// A differentiable function of `inputs` forward alone, or backward alone to all of them.
Work differentiable_work(const Json& request, const std::vector<Tensor>& inputs,
                         const std::function<Tensor()>& function) {
  if (request.at("pass") == "forward") return [=] { (void)no_grad(function); };
  if (request.at("pass") == "backward") return bench::ask::backward_of(function(), inputs);
  return nullptr;
}

Work norm_work(const Json& request, Device device) {
  const Tensor x = numbers(request, "input", device).set_requires_grad();
  const Tensor weight = ones({x.size(1)}, {.device = device}).set_requires_grad();
  const Tensor bias = zeros({x.size(1)}, {.device = device}).set_requires_grad();
  return differentiable_work(request, {x, weight, bias},
                             [=] { return batch_norm(x, weight, bias, {}, {}, {.training = true}); });
}

Work unfold_work(const Json& request, Device device) {
  const Tensor x = numbers(request, "input", device).set_requires_grad();
  const Tensor filters = numbers(request, "weight", device);
  const int64_t kernel = filters.size(2), padding = request.at("padding").at(0).get<int64_t>();
  const UnfoldOptions windows{.kernel_size = kernel, .padding = padding};
  if (request.at("pass") == "unfold") return [=] { (void)ops::unfold(x, windows); };
  if (request.at("pass") == "fold")
    return [=, columns = ops::unfold(x, windows)] {
      (void)ops::fold(columns, {x.size(2), x.size(3)}, windows);
    };
  const Tensor w = flatten(filters, 1).detach().set_requires_grad();
  return differentiable_work(request, {x, w},
                             [=] { return bench::ask::conv_by_hand(x, w, kernel, padding); });
}

Work step_work(const Json& request, Device device) {
  const auto step = std::make_shared<bench::TrainingStep>(
      bench::TrainingStepOptions{.model = request.at("model"),
                                 .batch_size = request.at("batch").get<int64_t>(),
                                 .format = request.at("format"),
                                 .device = device});
  step->data();
  return [=] {
    step->forward();
    step->loss();
    step->backward();
    step->optimize();
  };
}

/// `by_processor`: by the time that processors spent on this process, of which other programs take nothing.
Json result_of(const Json& request, Device device, bool by_processor, Work& work) {
  const std::string command = request.at("command");
  if (command == "versions") return bench::describe_machine(device, 0);
  if (command == "prepare") {
    work = {};  // its memory first
    static const std::map<std::string, Work (*)(const Json&, Device)> sections{
        {"conv", conv_work}, {"norm", norm_work}, {"unfold", unfold_work}, {"step", step_work}};
    const std::string section = request.at("section");
    check<ValueError>(sections.count(section) > 0, "there is no section \"{}\"", section);
    work = sections.at(section)(request, device);
    check<ValueError>(work != nullptr, "{} has no pass {}", section, request.at("pass").dump());
    return nullptr;
  }
  check<ValueError>(command == "time", "there is no command \"{}\"", command);
  const auto runs = request.at("runs").get<int64_t>();
  check<ValueError>(runs >= 1, "time: needs at least 1 run, got {}", runs);
  check<ValueError>(work != nullptr, "time: nothing was prepared");
  const auto clock = benchmark::device_clock(device);
  clock->start();
  const double begin = bench::seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  for (int64_t i = 0; i < runs; ++i) work();
  const double processor = bench::seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
  const auto [wall, on_device] = clock->stop();
  return 1e3 * (by_processor ? processor : on_device.value_or(wall)) / static_cast<double>(runs);
}

}  // namespace

int main(int argc, char** argv) {
  std::string device_name = "auto", precision = "highest", clock_name = "wall";
  int threads = 0;
  CLI::App app{"Times operations for bench/compare_torch.py; the head of its source says what it reads.",
               "timing_server"};
  app.add_option("--device", device_name)->capture_default_str();
  bench::add_choice(app, "--precision", precision, {"highest", "high"}, "of float32 on a GPU");
  bench::add_choice(app, "--clock", clock_name, {"wall", "processor"}, "on the CPU");
  app.add_option("--threads", threads)->transform(whole_number(1, max_num_threads()));
  return run_program(app, argc, argv, [&] {
    const Device device = choose_device(device_name);
    set_float32_precision(bench::precisions.at(precision));
    if (threads > 0) set_num_threads(threads);
    Work work;
    for (std::string line; std::getline(std::cin, line);) {
      Json reply;
      try {
        reply["result"] = result_of(Json::parse(line), device, clock_name == "processor", work);
      } catch (const std::exception& error) {
        reply["error"] = error.what();
      }
      print("%s\n", reply.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    }
  });
}
