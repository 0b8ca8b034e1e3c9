// What training by several processes costs. Each result is a line of JSON, which scaling.py reads:
//
//   mpirun -n 2 dist_bench collectives steps > results.jsonl
//
//   collectives  milliseconds of an all-reduce, by size
//   steps        a training step of some networks without reduction of gradients, and with it for several
//   bucket sizes

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pleat/dist/dist.h"
#include "pleat/pleat.h"

using namespace pleat;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace {

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Of rank 0 alone.
void print(const dist::Communicator& world, json result) {
  result["ranks"] = world.size();
  result["transport"] = world.transport();
  if (world.is_main()) std::cout << result.dump() << std::endl;
}

void time_collectives(const dist::Communicator& world) {
  for (int64_t count = 1; count <= int64_t{1} << 24; count *= 4) {
    const Tensor x = zeros({count}, {.device = world.device()});
    const int64_t calls = std::clamp<int64_t>(4'000'000 / count, 5, 400);
    std::vector<double> times;
    for (int round = 0; round < 7; ++round) {
      dist::barrier(world);
      const auto start = Clock::now();
      for (int64_t i = 0; i < calls; ++i) dist::all_reduce_(x, world);
      if (x.device().is_cuda()) cuda::synchronize(x.device());
      times.push_back(milliseconds_since(start) / static_cast<double>(calls));
    }
    print(world, {{"kind", "all_reduce"}, {"bytes", count * 4}, {"ms", median(times)}});
  }
}

/// A network with its loss on noise.
struct Task {
  std::unique_ptr<nn::Module> net;
  Tensor input;
  std::function<Tensor(const Tensor&)> loss;
};

Task make_task(const std::string& name, int64_t batch) {
  manual_seed(1);
  if (name == "chars") {
    const Tensor next = randint(0, 65, {batch * 64});
    return {std::make_unique<models::CharTransformer>(), randint(0, 65, {batch, 64}),
            [next](const Tensor& y) { return cross_entropy(flatten(y, 0, 1), next); }};
  }
  const Tensor target = randint(0, 10, {batch});
  return {std::make_unique<nn::Sequential>(models::make_classifier(name, {.num_classes = 10})),
          randn({batch, 3, 32, 32}), [target](const Tensor& y) { return cross_entropy(y, target); }};
}

/// Milliseconds of the parts of a step, each the median of many.
struct Parts {
  std::vector<double> forward, backward, optimizer;
  json medians() const {
    return {{"forward", median(forward)}, {"backward", median(backward)}, {"optimizer", median(optimizer)}};
  }
};

class Step {
 public:
  Step(const std::string& model, int64_t batch) : task_(make_task(model, batch)) {
    task_.net->train();
    sgd_.emplace(task_.net->parameters(), optim::SGDOptions{.lr = 1e-4, .momentum = 0.9});
  }
  nn::Module& net() { return *task_.net; }
  double backward_began_ms(Clock::time_point at) const {
    return std::chrono::duration<double, std::milli>(at - backward_began_).count();
  }

  void run(nn::Module& called, Parts* parts = nullptr) {
    synchronize();
    const auto start = Clock::now();
    const Tensor loss = task_.loss(called(task_.input));
    synchronize();
    const double forward = milliseconds_since(start);
    backward_began_ = Clock::now();
    {
      const RecordFunction range("backward");
      loss.backward();
    }
    synchronize();
    const double backward = milliseconds_since(backward_began_);
    const auto middle = Clock::now();
    sgd_->step();
    sgd_->zero_grad();
    synchronize();
    if (parts == nullptr) return;
    parts->forward.push_back(forward);
    parts->backward.push_back(backward);
    parts->optimizer.push_back(milliseconds_since(middle));
  }

 private:
  void synchronize() const {
    if (task_.input.device().is_cuda()) cuda::synchronize(task_.input.device());
  }

  Task task_;
  std::optional<optim::SGD> sgd_;
  Clock::time_point backward_began_;
};

/// When each gradient is there, in milliseconds from the beginning of backward, and its bytes.
json time_gradients(Step& step) {
  std::vector<std::pair<double, int64_t>> ready;
  const std::vector<Tensor> params = step.net().parameters();
  ready.resize(params.size());
  for (std::size_t i = 0; i < params.size(); ++i)
    params[i].register_hook(
        [&step, &ready, i, bytes = params[i].numel() * size_of(params[i].dtype())](const Tensor&) {
          ready[i] = {step.backward_began_ms(Clock::now()), bytes};
          return Tensor();
        });
  step.run(step.net());
  step.run(step.net());
  std::ranges::sort(ready);
  return ready;
}

int64_t overlap(const profile::Event& a, int64_t begin, int64_t end) {
  return std::max<int64_t>(0, std::min(a.end, end) - std::max(a.start, begin));
}

/// Collectives of a step, their bytes and time, and the part of that time in which backward computes.
json count(const profile::Profile& profile, double steps) {
  static const std::set<std::string> collectives{"all_reduce", "all_gather", "reduce_scatter", "broadcast"};
  double calls = 0, bytes = 0, moving = 0, hidden = 0;
  for (const profile::Event& event : profile.events) {
    if (!collectives.contains(event.name)) continue;
    ++calls;
    bytes += event.bytes;
    moving += static_cast<double>(event.duration());
    for (const profile::Event& backward : profile.events) {
      if (backward.name != "backward" || backward.kind != RangeKind::user) continue;
      int64_t end = backward.end;  // of what it computes
      for (const std::size_t child : backward.children)
        if (profile.events[child].name == "DataParallel.wait") end = profile.events[child].start;
      hidden += static_cast<double>(overlap(event, backward.start, end));
    }
  }
  return {{"collectives", calls / steps},
          {"bytes", bytes / steps},
          {"moving", moving / steps / 1e6},
          {"hidden", moving > 0 ? hidden / moving : 0}};
}

struct Options {
  std::vector<std::string> models = {"resnet20", "resnet18", "chars"};
  std::vector<double> buckets = {0.1, 1, 5, 25};
  int64_t batch = 32;
  int rounds = 15;
  std::string trace;
  bool sync_batch_norm = false;
};

/// A network that is trained alone, or with gradients reduced in buckets of a size.
struct Contender {
  Contender(const dist::Communicator& world, const std::string& model, const Options& options, double bucket)
      : step(model, options.batch), bucket_megabytes(bucket) {
    if (bucket == 0) return;
    if (options.sync_batch_norm) dist::convert_sync_batch_norm(step.net(), world);
    ddp.emplace(step.net(), world,
                dist::DataParallelOptions{.bucket_megabytes = bucket,
                                          .first_bucket_megabytes = std::min(bucket, 1.0)});
  }
  void run(Parts* to = nullptr) { step.run(ddp ? static_cast<nn::Module&>(*ddp) : step.net(), to); }

  Step step;
  double bucket_megabytes;  ///< 0: alone
  std::optional<dist::DataParallel> ddp;
  Parts parts = {};
};

void time_steps(const dist::Communicator& world, const Options& options) {
  for (const std::string& model : options.models) {
    std::vector<std::unique_ptr<Contender>> contenders;
    contenders.push_back(std::make_unique<Contender>(world, model, options, 0));
    for (const double bucket : options.buckets)
      contenders.push_back(std::make_unique<Contender>(world, model, options, bucket));
    for (const auto& each : contenders)
      for (int i = 0; i < 3; ++i) each->run();
    // In turn, so that a machine that is slower for a while is so for all of them.
    for (int i = 0; i < options.rounds; ++i)
      for (const auto& each : contenders) {
        dist::barrier(world);
        each->run(&each->parts);
      }
    for (const auto& each : contenders) {
      json result = each->parts.medians();
      result.update({{"model", model}, {"batch", options.batch}});
      if (!each->ddp) {
        result["kind"] = "alone";
        result["parameters"] = each->step.net().num_parameters();
        result["ready"] = time_gradients(each->step);
        print(world, result);
        continue;
      }
      constexpr int profiled = 5;
      profile::Profiler profiler{{.record_shapes = false}};
      for (int i = 0; i < profiled; ++i) each->run();
      profiler.stop();
      result.update(count(profiler.profile(), profiled));
      // The ranges of NCCL's calls last until they are given to the GPU.
      if (world.device().is_cuda())
        for (const char* time : {"moving", "hidden"}) result.erase(time);
      result["kind"] = options.sync_batch_norm ? "reduced, sync_batch_norm" : "reduced";
      result["bucket_megabytes"] = each->bucket_megabytes;
      result["buckets"] = each->ddp->num_buckets();
      print(world, result);
      if (!options.trace.empty() && world.is_main())
        profiler.profile().export_chrome_trace(
            fmt::format("{}_{}_{}.json", options.trace, model, each->bucket_megabytes));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What training by several processes costs: lines of JSON.", "dist_bench"};
  app.require_subcommand(1, 2);
  Options options;
  CLI::App* const collectives = app.add_subcommand("collectives", "an all-reduce, by size");
  CLI::App* const steps = app.add_subcommand("steps", "training steps, by size of buckets");
  steps->add_option("--models", options.models, "resnet20, resnet18, chars ...")->delimiter(',');
  steps->add_option("--buckets", options.buckets, "megabytes")->delimiter(',');
  steps->add_option("--batch", options.batch, "samples of a rank");
  steps->add_option("--rounds", options.rounds, "steps of which the median is taken");
  steps->add_option("--trace", options.trace,
                    "writes FILE_<model>_<bucket>.json for each, five steps of rank 0");
  steps->add_flag("--sync-batch-norm", options.sync_batch_norm, "batch norms by the statistics of all ranks");
  CLI11_PARSE(app, argc, argv);
  const dist::Communicator world = dist::init();
  const DefaultDevice device(world.device());
  if (collectives->parsed()) time_collectives(world);
  if (steps->parsed()) time_steps(world, options);
}
