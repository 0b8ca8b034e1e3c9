// Pleat's side of bench/compare_torch.py, which times two processes interleaved. Reads a JSON object from
// each line of standard input and writes one for each: {"result": ...}, or {"error": "..."}.
//   {"command": "versions"}         what it runs on
//   {"command": "peak"}             the most memory that it has held until now [MiB]
//   {"command": "ops"}              the problems of the survey (op_survey.h)
//   {"command": "networks"}         the names of those for inference (inference_networks.h)
//   {"command": "prepare", "section": "conv", "step", "ops", "inference" or "hub", ...}
//                                   makes the operands; of a step the result tells the number of parameters
//   {"command": "time", "runs": N}  runs what was prepared N times: milliseconds of one, on a GPU between
//   events
//                                   of the device, on the CPU by the clock of --clock; and how often the
//                                   system took a processor away meanwhile
//   {"command": "latencies", "callers": C, "requests": N, "pause": P}
//                                   C threads together run what was prepared N times, each with P
//                                   milliseconds after a run: the milliseconds of each, and the processor's
//                                   of one
// A problem of conv has a "pass", a "format", lists of sizes "input", "weight", "stride", "padding",
// "dilation", and "groups" and "tuned"; "transposed" with "output_padding" is conv_transpose1d ... 3d. A step
// has "model", "batch" and "format". Inference has "model", "batch", "pass" ("plan": of an Inference;
// "bfloat16" and "int8": of one that computes so; or "forward") and perhaps a "file", to which the network is
// written as ONNX. Hub has a "file" with a network as ONNX, its input in FILE.npy.
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <pleat/pleat.h>
#include <sys/resource.h>

#include "pleat/bench/ask/compare.h"
#include "pleat/bench/inference_networks.h"
#include "pleat/bench/machine.h"
#include "pleat/bench/measure.h"
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
          .groups = request.at("groups").get<int64_t>()};
}

/// The layer as a function that users call, with respect to its input or its weight alone.
Work conv_transpose_work(const Json& request, Device device) {
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

Work conv_work(const Json& request, Device device) {
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

Work inference_work(const Json& request) {
  auto [net, input] = bench::make_inference_network(request.at("model"), request.at("batch").get<int64_t>());
  if (request.contains("file"))
    onnx::export_onnx(request.at("file").get<std::string>(), *net, narrow(input, 0, 0, 1));
  if (request.at("pass") == "forward")
    return [net = net, input = input] {
      const NoGrad off_the_tape;
      (void)(*net)(input);
    };
  InferenceOptions options;
  if (request.at("pass") == "int8")
    options.calibration = {{bench::make_inference_network(request.at("model"), 8).input}};
  if (request.at("pass") == "bfloat16") {
    net->to(bfloat16);
    if (is_floating(input.dtype())) input = input.to(bfloat16);
  }
  const auto engine = std::make_shared<const Inference>(*net, input, options);
  return [net = net, input = input, engine] { (void)(*engine)(input); };
}

Work hub_work(const Json& request) {
  const std::string file = request.at("file");
  const auto net = std::make_shared<onnx::ImportedNetwork>(onnx::import_onnx(file));
  net->train();
  const auto optimizer = std::make_shared<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 1e-4});
  return [net, optimizer, x = io::read_npy(file + ".npy")] {
    optimizer->zero_grad();
    mean(square((*net)(x))).backward();
    optimizer->step();
  };
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

/// What a server's threads see that call one network.
Json latencies(const Json& request, const Work& work) {
  const auto callers = request.at("callers").get<std::size_t>();
  const auto requests = request.at("requests").get<std::size_t>();
  const std::chrono::duration<double, std::milli> pause(request.at("pause").get<double>());
  std::vector<std::vector<double>> taken(callers);
  const double begin = bench::seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  {
    std::vector<std::jthread> threads;
    for (std::vector<double>& own : taken)
      threads.emplace_back([&] {
        for (std::size_t i = 0; i < requests / callers; ++i) {
          const auto start = std::chrono::steady_clock::now();
          work();
          own.push_back(
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
          if (pause.count() > 0) std::this_thread::sleep_for(pause);
        }
      });
  }
  const double processor = bench::seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
  std::vector<double> all;
  for (const std::vector<double>& own : taken) all.insert(all.end(), own.begin(), own.end());
  return {{"processor_ms", 1e3 * processor / static_cast<double>(all.size())}, {"ms", all}};
}

/// `by_processor`: by the time that processors spent on this process, of which other programs take nothing.
Json result_of(const Json& request, Device device, bool by_processor, Work& work) {
  const std::string command = request.at("command");
  if (command == "versions") return bench::describe_machine(device, 0);
  if (command == "peak") return peak_mb();
  if (command == "ops") return bench::op_problems();
  if (command == "networks") return bench::inference_network_names();
  if (command == "prepare") {
    work = {};  // its memory first
    const std::string section = request.at("section");
    Json facts;  // which must be the same on the other side
    if (section == "conv") work = conv_work(request, device);
    if (section == "ops") work = bench::prepare_op(request).work;
    if (section == "inference") work = inference_work(request);
    if (section == "hub") work = hub_work(request);
    if (section == "step") {
      const auto batch = request.at("batch").get<int64_t>();
      const bench::NetworkStep step =
          bench::make_network_step(request.at("model"), batch, request.at("format"));
      work = step.run;
      facts = {{"parameters", step.parameters}};
    }
    check<ValueError>(work != nullptr, "{} has no pass {}", section, request.value("pass", ""));
    return facts;
  }
  check<ValueError>(command == "time" || command == "latencies", "there is no command \"{}\"", command);
  check<ValueError>(work != nullptr, "{}: nothing was prepared", command);
  if (command == "latencies") return latencies(request, work);
  const auto runs = request.at("runs").get<int64_t>();
  check<ValueError>(runs >= 1, "time: needs at least 1 run, got {}", runs);
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
