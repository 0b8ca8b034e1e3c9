#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/norm.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/profile/profile.h"
#include "pleat/profile/profiler.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/profile/profiles.h"

using namespace pleat;
using namespace pleat::profile;
using pleat_test::event;
using pleat_test::profile_of;

namespace {

/// A made-up profile.
Profile with_events(std::vector<Event> events) {
  Profile profile;
  profile.threads = 1;
  profile.events = std::move(events);
  for (std::size_t i = 0; i < profile.events.size(); ++i)
    if (profile.events[i].parent != none) profile.events[profile.events[i].parent].children.push_back(i);
  return profile;
}

/// The time during which an event of the name was running, thread by thread: measured by another way than the
/// code's.
int64_t covered(const Profile& profile, const std::string& name) {
  int64_t total = 0;
  for (int thread = 0; thread < profile.threads; ++thread) {
    std::vector<std::pair<int64_t, int64_t>> spans;
    for (const Event& e : profile.events)
      if (e.thread == thread && e.name == name) spans.emplace_back(e.start, e.end);
    std::sort(spans.begin(), spans.end());
    int64_t reached = 0;
    for (const auto& [start, end] : spans) {
      total += std::max<int64_t>(0, end - std::max(start, reached));
      reached = std::max(reached, end);
    }
  }
  return total;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The numbers of the column of percentages.
double sum_of_percents(const std::string& table, const std::string& title) {
  const std::vector<std::string> lines = lines_of(table);
  const auto header = std::find_if(lines.begin(), lines.end(),
                                   [&](const std::string& l) { return l.find(title) != std::string::npos; });
  REQUIRE(header != lines.end());
  const std::size_t end = header->find(title) + title.size();
  double sum = 0;
  for (auto line = header + 2; (*line)[0] != '-'; ++line) {
    REQUIRE((*line)[end - 1] == '%');
    const std::size_t start = line->rfind(' ', end - 1) + 1;
    sum += std::stod(line->substr(start, end - start - 1));
  }
  return sum;
}

}  // namespace

TEST_CASE("self and total times of random trees count nothing twice", "[profile]") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Profile profile = pleat_test::random_profile(seed);
    int64_t roots = 0, selves = 0;
    for (std::size_t i = 0; i < profile.events.size(); ++i) {
      const Event& e = profile.events[i];
      REQUIRE(e.end >= e.start);
      REQUIRE(self_time(profile, i) >= 0);
      selves += self_time(profile, i);
      if (e.parent == none) {
        roots += e.duration();
        continue;
      }
      const Event& parent = profile.events[e.parent];
      REQUIRE(e.parent < i);
      REQUIRE(e.thread == parent.thread);
      REQUIRE(e.start >= parent.start);
      REQUIRE(e.end <= parent.end);
    }
    CHECK(selves == roots);

    int64_t busy = 0;
    for (const DeviceActivity& activity : profile.activities) busy += activity.duration();
    for (const GroupBy by : {GroupBy::name, GroupBy::implementation, GroupBy::shape | GroupBy::module}) {
      const KeyAverages averages = profile.key_averages({.group_by = by});
      int64_t cpu = 0, cuda = 0, calls = 0;
      for (const KeyAverage& row : averages.rows) {
        cpu += row.self_cpu;
        cuda += row.self_cuda;
        CHECK(row.cpu >= row.self_cpu);
        CHECK(row.cuda >= row.self_cuda);
        CHECK(row.cpu <= averages.cpu);
        CHECK(row.cuda <= averages.cuda);
        if (row.name[0] != '(') calls += row.calls;
      }
      CHECK(cpu == roots);
      CHECK(averages.cpu == roots);
      CHECK(cuda == busy);
      CHECK(averages.cuda == busy);
      CHECK(calls == static_cast<int64_t>(profile.events.size()));
    }

    const KeyAverages averages = profile.key_averages();
    for (const KeyAverage& row : averages.rows) CHECK(row.cpu == covered(profile, row.name));
    if (profile.events.empty() || averages.cpu == 0) continue;
    const double rounding = 0.005 * static_cast<double>(averages.rows.size()) + 1e-9;
    CHECK(std::abs(sum_of_percents(averages.table(), "Self CPU %") - 100) <= rounding);
    CHECK(std::abs(sum_of_percents(averages.table(), "Self CUDA %") - 100) <= rounding);
  }
}

TEST_CASE("a range inside another of its row is counted once in the total", "[profile]") {
  const Profile profile =
      with_events({event("f", 0, 100, none, RangeKind::user), event("g", 10, 90, 0),
                   event("f", 20, 50, 1, RangeKind::user), event("f", 200, 250, none, RangeKind::user)});
  const KeyAverages averages = profile.key_averages();
  CHECK(averages.at("f").calls == 3);
  CHECK(averages.at("f").cpu == 150);
  CHECK(averages.at("f").self_cpu == 20 + 30 + 50);
  CHECK(averages.at("g").cpu == 80);
  CHECK(averages.at("g").self_cpu == 50);
  CHECK(averages.cpu == 150);
  CHECK_THROWS_WITH(averages.at("h"), "key_averages: there is no row \"h\"");
}

TEST_CASE("rows are grouped by shape, module and implementation when asked", "[profile]") {
  std::vector<Event> events{event("conv2d", 0, 10), event("conv2d", 10, 30), event("conv2d", 30, 60)};
  const TensorInfo image{true, {8, 3, 32, 32}, float32, MemoryFormat::channels_last, {}};
  const TensorInfo small{true, {8, 3, 16, 16}, float32, MemoryFormat::contiguous, {}};
  events[0].inputs = {image, {}};
  events[1].inputs = {image, {}};
  events[2].inputs = {small};
  events[0].implementation = "direct";
  events[1].implementation = events[2].implementation = "unfold";
  events[0].module = "layer1 (Conv2d)";
  const Profile profile = with_events(std::move(events));

  const KeyAverages by_name = profile.key_averages();
  REQUIRE(by_name.rows.size() == 1);
  CHECK(by_name.rows[0].implementation == "direct, unfold");
  CHECK(by_name.rows[0].format == "channels_last, contiguous");
  CHECK(by_name.rows[0].cpu == 60);

  const KeyAverages by_shape = profile.key_averages({.group_by = GroupBy::shape});
  REQUIRE(by_shape.rows.size() == 2);
  CHECK(by_shape.rows[0].shapes == "[8, 3, 32, 32] -");
  CHECK(by_shape.rows[0].calls == 2);
  CHECK(by_shape.rows[1].format == "contiguous");

  CHECK(profile.key_averages({.group_by = GroupBy::implementation}).rows.size() == 2);
  CHECK(profile.key_averages({.group_by = GroupBy::module}).rows.size() == 2);
  CHECK(profile.key_averages({.group_by = GroupBy::shape | GroupBy::implementation}).rows.size() == 3);
  CHECK(profile.key_averages({.group_by = GroupBy::format}).rows.size() == 2);
}

TEST_CASE("the table has the columns that people know", "[profile]") {
  std::vector<Event> events{event("conv2d", 0, 1'500'000), event("relu", 1'500'000, 2'000'000),
                            event("sum", 2'000'000, 2'000'500)};
  events[0].implementation = "direct";
  events[0].flops = 7.5e6;
  events[0].self_cpu_memory = 3 << 19;
  events[1].self_cpu_memory = -200;
  Profile profile = with_events(std::move(events));
  profile.with_flops = profile.with_memory = true;
  profile.warnings = {"look out"};
  CHECK(profile.key_averages().table({.sort_by = SortBy::cpu, .row_limit = 2, .width = 0}) ==
        R"(warning: look out
------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  --------------  ------------
  Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg       CPU Mem  Self CPU Mem    # of Calls  Implementation  Total MFLOPs
------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  --------------  ------------
conv2d        74.98%       1.500ms        74.98%       1.500ms       1.500ms      1.50 MiB      1.50 MiB             1          direct         7.500
  relu        24.99%     500.000us        24.99%     500.000us     500.000us        -200 B        -200 B             1                            --
------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  --------------  ------------
2 of 3 rows
Self CPU time total: 2.001ms
)");
}

TEST_CASE("a table leaves out what does not fit, but not what it is sorted by", "[profile]") {
  std::vector<Event> events{event(std::string(70, 'n'), 0, 100), event("relu", 100, 200)};
  events[0].implementation = "direct, winograd";
  Profile profile = with_events(std::move(events));
  profile.with_memory = profile.with_flops = true;
  for (const int width : {80, 100, 120, 200})
    for (const SortBy by : {SortBy::self_cpu, SortBy::cpu, SortBy::calls, SortBy::cpu_memory}) {
      CAPTURE(width, static_cast<int>(by));
      const std::string table = profile.key_averages().table({.sort_by = by, .width = width});
      const std::string titles = lines_of(table)[1];
      const char* const sorted = by == SortBy::cpu          ? "CPU total"
                                 : by == SortBy::calls      ? "# of Calls"
                                 : by == SortBy::cpu_memory ? "CPU Mem"
                                                            : "Self CPU";
      CHECK(titles.find(std::string("  ") + sorted) != std::string::npos);
      for (const std::string& line : lines_of(table)) CHECK(line.size() <= static_cast<std::size_t>(width));
      CHECK((table.find("No room for: ") != std::string::npos) == (width < 200));
    }
}

TEST_CASE("a table can be sorted by each of its columns", "[profile]") {
  std::vector<Event> events{event("a", 0, 100), event("b", 10, 90, 0), event("c", 200, 230),
                            event("c", 230, 231)};
  events[2].flops = 5;
  events[1].self_cpu_memory = 1;
  const KeyAverages averages = with_events(std::move(events)).key_averages();
  const auto first = [&](SortBy by) {
    const std::vector<std::string> lines = lines_of(averages.table({.sort_by = by}));
    return lines[3].substr(0, lines[3].find("  ", 4));
  };
  CHECK(first(SortBy::name).find('a') != std::string::npos);
  CHECK(first(SortBy::cpu).find('a') != std::string::npos);
  CHECK(first(SortBy::self_cpu).find('b') != std::string::npos);
  CHECK(first(SortBy::automatic).find('b') != std::string::npos);
  CHECK(first(SortBy::calls).find('c') != std::string::npos);
  CHECK(first(SortBy::flops).find('c') != std::string::npos);
  CHECK(first(SortBy::self_cpu_memory).find('b') != std::string::npos);
}

TEST_CASE("names that are long or hold control characters do not break a table", "[profile]") {
  const std::string umlauts = "\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4\xC3\xB6\xC3\xBC";
  const Profile profile =
      with_events({event("two\nlines\t", 0, 5), event(std::string(200, 'x'), 5, 9), event(umlauts, 9, 10)});
  const std::string table = profile.key_averages().table({.max_name_width = 10});
  CHECK(table.find("two?lines?") != std::string::npos);
  CHECK(table.find("xxxxxxx...") != std::string::npos);
  CHECK(table.find("\xC3\xA4\xC3\xB6\xC3\xBC...") != std::string::npos);
  CHECK(lines_of(table).size() == 8);
}

TEST_CASE("an empty profile has a table without rows", "[profile]") {
  const KeyAverages averages = Profile().key_averages();
  CHECK(averages.rows.empty());
  CHECK(averages.table().find("Self CPU time total: 0.000us") != std::string::npos);
}

namespace {

/// Hints of functions with their inputs' shapes, of which each took half as long as its node.
std::vector<std::string> hints_of(
    const std::vector<std::tuple<std::string, int64_t, std::vector<Shape>>>& calls) {
  std::vector<Event> events;
  int64_t now = 0;
  for (const auto& [name, duration, inputs] : calls) {
    Event& function = events.emplace_back(event(name, now, now + duration));
    for (const Shape& shape : inputs) function.inputs.push_back({.defined = true, .shape = shape});
    now += 3 * duration;
    events.push_back(event(name + "_backward", now - 2 * duration, now, none, RangeKind::backward));
    events.back().forward = events.size() - 2;
  }
  return fusion_hints(with_events(events));
}

}  // namespace

TEST_CASE("a profile says what one call would save", "[profile]") {
  const Shape x = {2, 3, 4, 4}, other = {2, 3, 4, 5}, c = {3};
  using Strings = std::vector<std::string>;
  // 0.8 of 30 of 300.
  const auto relus = hints_of({{"batch_norm", 45, {x, c, c}},
                               {"relu", 5, {x}},
                               {"conv2d", 0, {x, x}},
                               {"batch_norm", 45, {x, c, c}},
                               {"relu", 5, {x}}});
  REQUIRE(relus.size() == 1);
  CHECK(relus[0].starts_with("batch_norm + relu, 2 calls: one call, norm.forward(x, {}, {.min = 0}), "));
  CHECK(relus[0].ends_with("would save about 8 % of the time"));
  // 0.4 of 60 of 180, from a residual that comes first or second.
  for (const auto& sum : {std::vector<Shape>{x, x}, {other, x}}) {
    const auto residual = hints_of({{"batch_norm", 40, {x, c}}, {"add", 10, sum}, {"relu", 10, {x}}});
    REQUIRE(residual.size() == 1);
    CHECK(residual[0].starts_with("batch_norm + add + relu, 1 call: "));
    CHECK(residual[0].ends_with("about 13 % of the time"));
  }
  // Of another tensor, with another function between them, without effect, and none at all.
  CHECK(hints_of({{"batch_norm", 10, {x, c}}, {"relu", 10, {other}}}) == Strings{});
  CHECK(hints_of({{"batch_norm", 10, {x, c}}, {"dropout", 1, {x}}, {"relu", 10, {x}}}) == Strings{});
  CHECK(hints_of({{"batch_norm", 1000, {x, c}}, {"relu", 1, {x}}}) == Strings{});
  CHECK(hints_of({}) == Strings{});
  KeyAverages averages = with_events({event("batch_norm", 0, 1)}).key_averages();
  averages.hints = {"batch_norm + relu"};
  CHECK(averages.table().ends_with("hint: batch_norm + relu\n"));
}

TEST_CASE("what a profile advises goes away when it is followed", "[profile]") {
  nn::BatchNorm2d norm{{.num_features = 16}};
  const Tensor x = randn({2, 16, 8, 8}).set_requires_grad();
  const auto hints = [](const auto& work) {
    return fusion_hints(profile_of([&] { sum(work()).backward(); }), 0).size();
  };
  CHECK(hints([&] { return relu(norm(x)); }) == 1);
  CHECK(hints([&] { return norm.forward(x, {}, {.min = 0}); }) == 0);
  CHECK(hints([&] { return relu(norm(x) + x); }) == 1);
  CHECK(hints([&] { return norm.forward(x, x, {.min = 0}); }) == 0);
}
