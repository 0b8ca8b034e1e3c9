// Pleat's side of bench/compare_torch.py, which times two processes interleaved. Reads a JSON object from
// each line of standard input and writes one for each: {"result": ...}, or {"error": "..."}.
//   {"command": "versions"}             what it runs on
//   {"command": "peak"}                 the most memory that it has held until now [MiB]
//   {"command": "ops"}                  the problems of the survey of ops
//   {"command": "time", "runs": N}      runs what was prepared N times: milliseconds of one, on a GPU
//                                       between events of the device, on the CPU by the clock of --clock; and
//                                       how often the system took a processor away meanwhile
//   {"command": "prepare", "section": ...}
//                                       makes the operands. Sections and their passes:
//     conv     forward, backward_input, backward_weight, by the raw functions of ops/conv/; "transposed"
//              with "output_padding": by conv_transpose1d ... 3d
//     norm     forward, backward: batch norm in training
//     unfold   unfold, fold; forward (unfold, matmul, fold: a convolution written by hand), backward of that
//     step     a training step of a network (network_step.h); its result tells the number of parameters
//     ops      a row of the survey of ops (op_survey.h)
//   with "pass", "format" and lists of sizes "input", "weight", "stride", "padding", "dilation"; "groups",
//   "implementation", "tuned"; of a step "model" and "batch".
#include <concepts>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <pleat/pleat.h>
#include <sys/resource.h>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/case.h"
#include "pleat/bench/machine.h"
#include "pleat/bench/network_step.h"
#include "pleat/bench/op_survey.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/device.h"
#include "pleat/examples/common/options.h"
#include "pleat/examples/common/program.h"

using namespace pleat;
using bench::ask::gradient_for;

namespace {

using Json = nlohmann::json;
using bench::Work;
using Numbers = std::vector<int64_t>;

/// What runs, and what must be the same on the other side.
struct Prepared {
  template <std::convertible_to<Work> F>
  Prepared(F work_, Json facts_ = nullptr) : work(std::move(work_)), facts(std::move(facts_)) {}
  Work work;
  Json facts;
};

/// Standard normal numbers in the shape of that name and the request's format.
Tensor numbers(const Json& request, const char* name, Device device) {
  return bench::operand(request.at(name).get<Numbers>(), {.format = request.at("format"), .device = device});
}

/// What ConvOptions and ConvTransposeOptions share.
template <class Options>
Options layer_options(const Json& request) {
  return {.stride = request.at("stride").get<Numbers>(),
          .padding = request.at("padding").get<Numbers>(),
          .dilation = request.at("dilation").get<Numbers>(),
          .groups = request.at("groups").get<int64_t>(),
          .implementation = request.value("implementation", "")};
}

/// The layer as a function that users call, with respect to its input or its weight alone.
Prepared conv_transpose_work(const Json& request, Device device) {
  auto options = layer_options<ConvTransposeOptions>(request);
  options.output_padding = request.at("output_padding").get<Numbers>();
  const ConvPolicyOptions policy{.benchmark = request.value("tuned", false)};
  const Tensor x = numbers(request, "input", device), w = numbers(request, "weight", device);
  const std::string pass = request.at("pass");
  const auto forward = [=] {
    const ConvPolicy guard{policy};
    return x.rank() == 3   ? conv_transpose1d(x, w, options)
           : x.rank() == 4 ? conv_transpose2d(x, w, options)
                           : conv_transpose3d(x, w, options);
  };
  if (pass == "forward") return [=] { (void)forward(); };
  const Tensor wanted = pass == "backward_input" ? x : w;
  wanted.set_requires_grad();
  return bench::ask::backward_of(forward(), {wanted});
}

Prepared conv_work(const Json& request, Device device) {
  if (request.value("transposed", false)) return conv_transpose_work(request, device);
  const auto options = layer_options<ConvOptions>(request);
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

Prepared norm_work(const Json& request, Device device) {
  const Tensor x = numbers(request, "input", device).set_requires_grad();
  const Tensor weight = ones({x.size(1)}, {.device = device}).set_requires_grad();
  const Tensor bias = zeros({x.size(1)}, {.device = device}).set_requires_grad();
  return differentiable_work(request, {x, weight, bias},
                             [=] { return batch_norm(x, weight, bias, {}, {}, {.training = true}); });
}

Prepared unfold_work(const Json& request, Device device) {
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

/// Says how many parameters it trains, so that both sides train the same.
Prepared step_work(const Json& request, Device) {
  const bench::NetworkStep step =
      bench::make_network_step(request.at("model"), request.at("batch").get<int64_t>(), request.at("format"));
  return {step.run, {{"parameters", step.parameters}}};
}

/// Of /proc/self/status, because the peak of getrusage is that of the program that started this one, too.
double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> word) return std::stod(word) / 1024;
  fail<Error>("/proc/self/status does not tell the peak of memory");
}

/// How often the system took a processor away from a thread of this program that had work.
int64_t interruptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

/// `by_processor`: by the time that processors spent on this process, of which other programs take nothing.
Json result_of(const Json& request, Device device, bool by_processor, Work& work) {
  const std::string command = request.at("command");
  if (command == "versions") return bench::describe_machine(device, 0);
  if (command == "peak") return peak_mb();
  if (command == "ops") return bench::op_problems();
  if (command == "prepare") {
    work = {};  // its memory first
    static const std::map<std::string, std::function<Prepared(const Json&, Device)>> sections{
        {"conv", conv_work},
        {"norm", norm_work},
        {"unfold", unfold_work},
        {"step", step_work},
        {"ops", [](const Json& row, Device) { return bench::prepare_op(row); }}};
    const std::string section = request.at("section");
    check<ValueError>(sections.count(section) > 0, "there is no section \"{}\"", section);
    const Prepared prepared = sections.at(section)(request, device);
    work = prepared.work;
    check<ValueError>(work != nullptr, "{} has no pass {}", section, request.at("pass").dump());
    return prepared.facts;
  }
  check<ValueError>(command == "time", "there is no command \"{}\"", command);
  const auto runs = request.at("runs").get<int64_t>();
  check<ValueError>(runs >= 1, "time: needs at least 1 run, got {}", runs);
  check<ValueError>(work != nullptr, "time: nothing was prepared");
  const auto clock = benchmark::device_clock(device);
  const int64_t interrupted = interruptions();
  clock->start();
  const double begin = bench::seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  for (int64_t i = 0; i < runs; ++i) work();
  const double processor = bench::seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
  const auto [wall, on_device] = clock->stop();
  return {{"ms", 1e3 * (by_processor ? processor : on_device.value_or(wall)) / static_cast<double>(runs)},
          {"interruptions", interruptions() - interrupted}};
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
    const DefaultDevice guard(device);
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
