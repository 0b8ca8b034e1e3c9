#include <algorithm>
#include <deque>
#include <stdexcept>
#include <thread>

#include <nlohmann/json.hpp>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/conv/tune/tune.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/damage.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::ops;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// Tells the times it was given, one after another, and counts the runs.
class ScriptedStopwatch : public Stopwatch {
 public:
  explicit ScriptedStopwatch(std::deque<double> times) : times_(std::move(times)) {}
  double measure(const std::function<void()>& work) override {
    work();
    REQUIRE(!times_.empty());
    const double time = times_.front();
    times_.pop_front();
    return time;
  }
  bool is_used_up() const { return times_.empty(); }

 private:
  std::deque<double> times_;
};

Candidate fake(
    const std::string& name, std::function<void()> work = [] {}) {
  return {.name = name, .run = std::move(work), .workspace_bytes = [] { return int64_t{7}; }};
}

struct Example {
  Generator generator{5};
  Tensor x = randn({2, 3, 6, 5}, {}, generator);
  Tensor w = randn({4, 3, 3, 3}, {}, generator);
  ConvOptions options{.padding = 1};

  ConvCall call() const { return forward_call(x, w, {}, options); }
};

std::vector<std::string> names_of(const std::vector<Timing>& timings, const std::string& pass) {
  std::vector<std::string> names;
  for (const Timing& timing : timings)
    if (timing.pass == pass) names.push_back(timing.implementation);
  return names;
}

/// An empty tuner, before and after.
struct FreshTuner {
  FreshTuner() { Tuner::clear(); }
  ~FreshTuner() { Tuner::clear(); }
};

json read_json(const std::filesystem::path& path) { return json::parse(std::ifstream(path)); }
void write_json(const std::filesystem::path& path, const json& value) { std::ofstream(path) << value; }

/// Makes the file say that this one was the fastest in all its problems.
void put_first(const std::filesystem::path& path, const std::string& implementation) {
  json file = read_json(path);
  for (json& entry : file["entries"]) {
    json timing = entry["timings"][0];
    timing["implementation"] = implementation;
    entry["timings"].insert(entry["timings"].begin(), timing);
  }
  write_json(path, file);
}

}  // namespace

TEST_CASE("the tuner takes medians and stops early where a candidate cannot be the fastest", "[conv][tune]") {
  const Example example;
  int runs = 0;
  const auto count = [&] { ++runs; };
  // Each is measured for as many samples as asked; the last is over three times the best median.
  ScriptedStopwatch stopwatch({5, 9, 4, 3, 8, 2, 12.5});
  const auto timings = time_conv(example.call(), {fake("a", count), fake("b", count), fake("c", count)},
                                 stopwatch, {.warmups = 2, .samples = 3});
  REQUIRE(timings.size() == 3);
  CHECK(timings[0].implementation == "b");
  CHECK(timings[0].milliseconds == 3);
  CHECK(timings[0].fastest == 2);
  CHECK(timings[0].workspace_bytes == 7);
  CHECK(timings[0].gflops == Approx(static_cast<double>(example.call().problem.flops()) / 3e6));
  CHECK(timings[1].implementation == "a");
  CHECK(timings[1].milliseconds == 5);
  CHECK(timings[2].implementation == "c");
  CHECK(timings[2].milliseconds == 12.5);
  CHECK(stopwatch.is_used_up());
  CHECK(runs == 3 * 2 + 3 + 3 + 1);
}

TEST_CASE("the tuner repeats what is shorter than a millisecond", "[conv][tune]") {
  const Example example;
  int runs = 0;
  ScriptedStopwatch stopwatch({0.25, 2, 4, 6});
  const auto timings =
      time_conv(example.call(), {fake("a", [&] { ++runs; })}, stopwatch, {.warmups = 0, .samples = 3});
  CHECK(runs == 1 + 3 * 4);
  CHECK(timings[0].milliseconds == 1);
  ScriptedStopwatch zero({0, 0});
  runs = 0;
  time_conv(example.call(), {fake("a", [&] { ++runs; })}, zero, {.warmups = 0, .samples = 1});
  CHECK(runs == 51);
}

TEST_CASE("a candidate that fails is left out with its reason", "[conv][tune]") {
  const Example example;
  const auto out_of_memory = [] { throw OutOfMemoryError("no 3 GiB"); };
  ScriptedStopwatch stopwatch({2});
  const auto timings = time_conv(
      example.call(), {fake("big", out_of_memory), fake("good"), {"unborn", nullptr, nullptr, "no plan"}},
      stopwatch, {.warmups = 0, .samples = 1});
  REQUIRE(timings.size() == 3);
  CHECK(timings[0].implementation == "good");
  CHECK(timings[0].failure.empty());
  CHECK(timings[1].implementation == "big");
  CHECK(timings[1].failure == "no 3 GiB");
  CHECK(timings[2].failure == "no plan");
  CHECK_THAT(describe(timings[1]), Contains("failed: no 3 GiB"));

  ScriptedStopwatch none({});
  CHECK_THROWS_AS(time_conv(example.call(),
                            {fake("big", out_of_memory), {"unborn", nullptr, nullptr, "no plan"}}, none, {}),
                  OutOfMemoryError);
  const auto lost = [] { throw DeviceLostError("gone"); };
  CHECK_THROWS_AS(time_conv(example.call(), {fake("good"), fake("lost", lost)}, *stopwatch_for({}), {}),
                  DeviceLostError);
}

TEST_CASE("candidates are all that support a call, the reference only alone", "[conv][tune][cpu]") {
  const Example example;
  const auto names = [&](const std::string& wanted) {
    std::vector<std::string> result;
    for (const Candidate& candidate : conv_candidates(example.call(), wanted))
      result.push_back(candidate.name);
    return result;
  };
  std::vector<std::string> all{"direct", "unfold"};
  if (all_conv_implementations().find(example.call().problem, ConvPass::forward, "onednn") != nullptr)
    all.emplace_back("onednn");
  CHECK(names("") == all);
  CHECK(names("winograd").empty());  // it needs more channels
  CHECK(names("unfold") == std::vector<std::string>{"unfold"});
  CHECK(names("reference") == std::vector<std::string>{"reference"});
  CHECK(names("fft").empty());
  const ConvCall call = example.call();
  for (const Candidate& candidate : conv_candidates(call, "")) {
    INFO(candidate.name);
    const auto implementation = all_conv_implementations().find(call.problem, call.pass, candidate.name);
    REQUIRE(implementation != nullptr);
    CHECK(candidate.workspace_bytes() ==
          implementation->workspace_bytes(solved_problem(call.problem, *implementation), call.pass));
    CHECK_NOTHROW(candidate.run());
  }
}

TEST_CASE("tune_conv times each pass apart and changes nothing", "[conv][tune][cpu]") {
  const FreshTuner fresh;
  const Example example;
  const Tensor bias = ones({4});
  const auto x_before = example.x.to_vector();
  const auto w_before = example.w.to_vector();
  const uint64_t version = example.x.version();
  const auto timings = tune_conv(example.x, example.w, bias, example.options, {.warmups = 0, .samples = 1});
  for (const char* pass : {"forward", "backward_input", "backward_weight"}) {
    auto names = names_of(timings, pass);
    std::sort(names.begin(), names.end());
    std::vector<std::string> expected;
    for (const Candidate& candidate : conv_candidates(example.call(), "")) expected.push_back(candidate.name);
    std::sort(expected.begin(), expected.end());
    CHECK(names == expected);
  }
  for (std::size_t i = 1; i < timings.size(); ++i)
    if (timings[i].pass == timings[i - 1].pass) CHECK(timings[i].milliseconds >= timings[i - 1].milliseconds);
  CHECK(Tuner::size() == 3);
  CHECK(example.x.to_vector() == x_before);
  CHECK(example.w.to_vector() == w_before);
  CHECK(example.x.version() == version);
  CHECK(bias.to_vector() == std::vector<float>(4, 1));
  const std::string table = Tuner::table();
  CHECK_THAT(table, Contains("conv2d forward n2 c3 k4 g1 in 1x6x5 kernel 1x3x3") && Contains("with bias") &&
                        Contains("unfold") && Contains("GFLOP/s"));
  CHECK_THROWS_WITH(tune_conv(example.x, example.w, example.options, {.samples = 0}),
                    Contains("needs warmups >= 0 and samples >= 1, got 2 and 0"));
  CHECK_THROWS_WITH(tune_conv(zeros({0, 3, 6, 5}), example.w), Contains("has no elements to time"));
  CHECK_THROWS_AS(tune_conv(zeros({2, 4, 6, 5}), example.w), ShapeError);
}

TEST_CASE("a policy with benchmark uses the winner that is known", "[conv][tune][cpu]") {
  const FreshTuner fresh;
  const pleat_test::TemporaryDirectory directory;
  const Example example;
  const ConvPolicy policy{{.benchmark = true}};
  const auto format = [&] { return conv_forward(example.x, example.w, {}, example.options).memory_format(); };
  CHECK(format() == MemoryFormat::channels_last);
  CHECK(Tuner::size() == 1);
  format();
  CHECK(Tuner::size() == 1);
  // The reference, which is never timed beside others, is the one that keeps its input's format.
  Tuner::save(directory / "tuned.json");
  put_first(directory / "tuned.json", "reference");
  CHECK(Tuner::load(directory / "tuned.json") == 1);
  CHECK(format() == MemoryFormat::contiguous);
  {
    const ConvPolicy deterministic{{.deterministic = true, .benchmark = true}};
    CHECK(format() == MemoryFormat::channels_last);
    CHECK(Tuner::size() == 1);  // nothing was timed
  }
  // What a file says of an implementation that is not there is measured anew.
  put_first(directory / "tuned.json", "fft");
  Tuner::load(directory / "tuned.json");
  CHECK(format() == MemoryFormat::channels_last);
}

TEST_CASE("a named implementation restricts tuning to its plans", "[conv][tune]") {
  const FreshTuner fresh;
  Example example;
  const ConvPolicy policy{{.implementation = "unfold", .benchmark = true}};
  conv_forward(example.x, example.w, {}, example.options);
  CHECK_THAT(Tuner::table(), Contains(" by unfold") && Contains("unfold  ") && !Contains("direct"));
  example.options.implementation = "fft";
  CHECK_THROWS_WITH(conv_forward(example.x, example.w, {}, example.options),
                    Contains("there is no implementation \"fft\""));
  example.options.implementation = "unfold:7";
  CHECK_THROWS_WITH(conv_forward(example.x, example.w, {}, example.options),
                    Contains("\"unfold\" has no plans to choose from, got \"unfold:7\""));
}

TEST_CASE("results that depend on different things are kept apart", "[conv][tune][cpu]") {
  const FreshTuner fresh;
  const Example example;
  const ConvPolicy policy{{.benchmark = true}};
  std::size_t expected = 0;
  const auto grows = [&](const Tensor& x, const Tensor& bias, ConvOptions options) {
    conv_forward(x, example.w, bias, options);
    return Tuner::size() == ++expected;
  };
  CHECK(grows(example.x, {}, {.padding = 1}));
  CHECK(grows(example.x, {}, {.padding = 0}));
  CHECK(grows(example.x, ones({4}), {.padding = 1}));
  CHECK(grows(example.x.to(MemoryFormat::channels_last), {}, {.padding = 1}));
  CHECK(grows(example.x, {}, {.padding = 1, .format = MemoryFormat::contiguous}));
  CHECK(grows(example.x, {}, {.padding = 1, .precision = Precision::high}));
  {
    const ConvPolicy small{{.benchmark = true, .workspace_limit = 1000}};
    CHECK(grows(example.x, {}, {.padding = 1}));
  }
  const int threads = num_threads();
  set_num_threads(threads + 1);
  CHECK(grows(example.x, {}, {.padding = 1}));
  set_num_threads(threads);
  conv_forward(zeros({0, 3, 6, 5}), example.w, {}, {});
  CHECK(Tuner::size() == expected);
}

TEST_CASE("backward passes keep the precision of the forward call", "[conv][tune]") {
  const FreshTuner fresh;
  const Example example;
  const ConvPolicy policy{{.benchmark = true}};
  const auto check_passes = [&](const Tensor& y) {
    y.backward(ones(y.shape()));
    const std::string table = Tuner::table();
    for (const char* pass : {"forward ", "backward_input ", "backward_weight "})
      CHECK_THAT(table, Contains(std::string("conv2d ") + pass));
    CHECK_THAT(table,
               Contains("precision high") && !Contains("precision highest") && !Contains("precision medium"));
    CHECK(Tuner::size() == 3);
    Tuner::clear();
  };
  const auto leaf = [](const Tensor& t) { return t.clone().set_requires_grad(); };
  Tensor y;
  {
    const PrecisionScope scope(Precision::high);
    y = conv2d(leaf(example.x), leaf(example.w), example.options);
  }
  check_passes(y);
  {
    const ConvPolicy inner{{.precision = Precision::high, .benchmark = true}};
    y = conv2d(leaf(example.x), leaf(example.w), example.options);
  }
  const PrecisionScope scope(Precision::medium);
  check_passes(y);
  check_passes(conv2d(leaf(example.x), leaf(example.w), {.precision = Precision::high}));
  // Its forward pass is the backward_input of a convolution.
  check_passes(
      conv_transpose2d(leaf(example.x), leaf(randn({3, 4, 3, 3})), {}, {.precision = Precision::high}));
}

TEST_CASE("a convolution inside a candidate is not tuned", "[conv][tune]") {
  const FreshTuner fresh;
  const Example example;
  const ConvPolicy policy{{.benchmark = true}};
  ScriptedStopwatch stopwatch({2});
  const auto inner = [&] { conv_forward(example.x, example.w, {}, example.options); };
  time_conv(example.call(), {fake("outer", inner)}, stopwatch, {.warmups = 0, .samples = 1});
  CHECK(Tuner::size() == 0);
  inner();
  CHECK(Tuner::size() == 1);
}

TEST_CASE("several threads may tune at once", "[conv][tune]") {
  const FreshTuner fresh;
  const Example example;
  const auto expected = conv_forward(example.x, example.w, {}, {.implementation = "reference"}).to_vector();
  std::vector<std::vector<float>> results(6);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&] {
      const ConvPolicy policy{{.benchmark = true}};
      result = conv_forward(example.x, example.w, {}, {}).to_vector();
      Tuner::table();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(Tuner::size() == 1);
  for (const auto& result : results) {
    REQUIRE(result.size() == expected.size());
    for (std::size_t i = 0; i < result.size(); ++i) CHECK(result[i] == Approx(expected[i]).margin(1e-5));
  }
}

TEST_CASE("what is known is bounded; the longest unused goes first", "[conv][tune]") {
  const auto entry = [](const std::string& problem, const std::string& winner) {
    return TuneEntry{{"m", "v", problem}, {Timing{.implementation = winner}}};
  };
  const auto key = [](const std::string& problem) { return TuneKey{"m", "v", problem}; };
  TuneCache cache(2);
  cache.put(entry("a", "1"));
  cache.put(entry("b", "2"));
  CHECK(cache.winner(key("a")) == "1");
  cache.put(entry("c", "3"));
  CHECK_FALSE(cache.winner(key("b")).has_value());
  CHECK(cache.winner(key("a")) == "1");
  CHECK(cache.winner(key("c")) == "3");
  cache.put(entry("a", "4"));
  CHECK(cache.size() == 2);
  CHECK(cache.winner(key("a")) == "4");
  CHECK_FALSE(cache.winner({"other", "v", "a"}).has_value());
  CHECK_FALSE(cache.winner({"m", "other", "a"}).has_value());
  cache.set_limit(1);
  CHECK(cache.size() == 1);
  CHECK(cache.winner(key("a")) == "4");
  cache.set_limit(3);
  cache.put({entry("x", "5"), entry("y", "6"), entry("z", "7")});
  CHECK(cache.entries().front().key.problem == "x");
  CHECK_FALSE(cache.winner(key("a")).has_value());
  cache.clear();
  CHECK(cache.size() == 0);
  CHECK_THROWS_WITH(Tuner::set_limit(0), Contains("needs at least 1"));
}

TEST_CASE("what is known survives a file; entries of other machines stay and do not match",
          "[conv][tune][cpu]") {
  const FreshTuner fresh;
  const pleat_test::TemporaryDirectory directory;
  const auto path = directory / "tuned.json";
  const Example example;
  tune_conv(example.x, example.w, example.options, {.warmups = 0, .samples = 1});
  const std::string table = Tuner::table();
  Tuner::save(path);
  Tuner::clear();
  CHECK(Tuner::load(path) == 3);
  CHECK(Tuner::table() == table);

  const std::vector<TuneEntry> entries = {{{"m \"1\"", "v", "p"},
                                           {Timing{"backward_weight", "a:plan", 0.1, 0.05, 1 << 20, 12.5, ""},
                                            Timing{"backward_weight", "b", 0, 0, 0, 0, "out of\nmemory"}}}};
  pleat_test::write_bytes(path, tuning_text(entries));
  const auto read = read_tuning(path.string());
  REQUIRE(read.size() == 1);
  CHECK(read[0].key == entries[0].key);
  CHECK(read[0].timings == entries[0].timings);

  Tuner::clear();
  const ConvPolicy policy{{.benchmark = true}};
  conv_forward(example.x, example.w, {}, example.options);
  Tuner::save(path);
  put_first(path, "reference");
  for (const char* part : {"machine", "versions"}) {
    json file = read_json(path);
    file["entries"][0][part] = "another";
    write_json(directory / "foreign.json", file);
    Tuner::clear();
    Tuner::load(directory / "foreign.json");
    CHECK(conv_forward(example.x, example.w, {}, example.options).memory_format() ==
          MemoryFormat::channels_last);
    CHECK(Tuner::size() == 2);
    Tuner::save(directory / "both.json");
    CHECK(read_json(directory / "both.json")["entries"].size() == 2);
  }
}

TEST_CASE("a damaged or foreign file of timings is refused, with nothing changed", "[conv][tune]") {
  const FreshTuner fresh;
  const pleat_test::TemporaryDirectory directory;
  const auto path = directory / "tuned.json";
  const Example example;
  tune_conv(example.x, example.w, example.options, {.warmups = 0, .samples = 1});
  Tuner::save(path);
  const json valid = read_json(path);
  const std::string table = Tuner::table();
  const auto refuses = [&](const json& file, const std::string& reason) {
    write_json(path, file);
    CHECK_THROWS_WITH(Tuner::load(path),
                      Contains("Tuner::load: '" + path.string() + "': ") && Contains(reason));
    CHECK(Tuner::table() == table);
  };
  const auto changed = [&](const char* pointer, const json& value) {
    json file = valid;
    file[json::json_pointer(pointer)] = value;
    return file;
  };
  refuses(json::array(), "holds no timings of Pleat");
  refuses({{"a", 1}}, "holds no timings of Pleat");
  refuses(changed("/version", 2), "its version is not 1");
  refuses(changed("/entries", 7), "'entries' is no list");
  refuses(changed("/entries/0", 7), "an entry lacks 'machine'");
  refuses(changed("/entries/0/machine", 7), "'machine' is no text");
  refuses(changed("/entries/0/problem", "a\nb"), "'problem' has several lines");
  refuses(changed("/entries/0/timings", json::array()), "nothing was timed");
  refuses(changed("/entries/0/timings/0/failure", "slow"), "nothing was timed");
  refuses(changed("/entries/0/timings/0/pass", 7), "'pass' is no text");
  refuses(changed("/entries/0/timings/0/milliseconds", -1), "'milliseconds' is no number of 0 or more");
  refuses(changed("/entries/0/timings/0/workspace_bytes", 0.5), "'workspace_bytes' is no number of bytes");
  refuses(changed("/entries/0/timings/0/implementation", ""), "an implementation has no name");
  refuses(changed("/entries/1", valid["entries"][0]), "twice");
  CHECK_THROWS_WITH(Tuner::load(directory / "none.json"), Contains("No such file"));
  CHECK_THROWS_AS(Tuner::load(directory.path()), FileError);
  CHECK_THROWS_AS(Tuner::save(directory / "no" / "tuned.json"), FileError);

  pleat_test::write_bytes(path, valid.dump());
  const auto report = test::damage(
      pleat_test::read_bytes(path), path, 300,
      [&](const std::filesystem::path& file) { read_tuning(file.string()); }, false);
  CHECK(report.refused > 300);
}
