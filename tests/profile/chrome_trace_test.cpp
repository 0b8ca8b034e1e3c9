#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/profile/profiles.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::profile;
using nlohmann::json;

namespace {

json parsed(const Profile& profile) {
  std::ostringstream out;
  write_chrome_trace(out, profile);
  return json::parse(out.str());
}

/// A time of the trace, in nanoseconds.
int64_t ns(const json& value) { return std::llround(value.get<double>() * 1000); }

struct Slice {
  int64_t start, end;
};

/// Whether any two of them are apart or one in the other.
bool nest(std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<int64_t> open;
  for (const Slice& slice : slices) {
    while (!open.empty() && open.back() <= slice.start) open.pop_back();
    if (!open.empty() && slice.end > open.back()) return false;
    open.push_back(slice.end);
  }
  return true;
}

Profile profile_of_names(const std::vector<std::string>& names) {
  Profile profile;
  profile.threads = 1;
  for (const std::string& name : names) {
    const int64_t start = static_cast<int64_t>(profile.events.size()) * 10, end = start + 5;
    profile.events.push_back(
        {.name = name, .start = start, .end = end, .implementation = name, .module = name});
    profile.activities.push_back({.name = name, .start = start, .end = end});
  }
  profile.warnings = names;
  return profile;
}

}  // namespace

TEST_CASE("slices of a trace nest, and flows begin and end in slices", "[profile]") {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Profile profile = pleat_test::random_profile(seed);
    const json trace = parsed(profile);
    using Row = std::pair<int, int>;
    std::map<Row, std::vector<Slice>> rows;
    std::map<int64_t, std::vector<json>> flows;
    std::set<Row> named;
    for (const json& event : trace.at("traceEvents")) {
      const std::string phase = event.at("ph");
      if (phase == "C") continue;
      const Row row{event.at("pid"), event.at("tid")};
      if (phase == "X") {
        REQUIRE(event.at("dur").get<double>() >= 0);
        rows[row].push_back({ns(event.at("ts")), ns(event.at("ts")) + ns(event.at("dur"))});
      } else if (phase == "M") {
        if (event.at("name") == "thread_name") CHECK(named.insert(row).second);
      } else {
        flows[event.at("id")].push_back(event);
      }
    }
    std::size_t slices = 0;
    for (const auto& [row, list] : rows) {
      CHECK(nest(list));
      CHECK(named.contains(row));
      slices += list.size();
    }
    CHECK(slices == profile.events.size() + profile.activities.size());
    std::size_t linked = 0;
    for (const DeviceActivity& activity : profile.activities) linked += activity.event != none ? 1 : 0;
    CHECK(flows.size() == linked);
    for (const auto& [id, ends] : flows) {
      REQUIRE(ends.size() == 2);
      CHECK(ends[0].at("ph") == "s");
      CHECK(ends[1].at("ph") == "f");
      CHECK(ends[1].at("bp") == "e");
      CHECK(ends[0].at("name") == "ac2g");
      for (const json& end : ends) {
        const auto& list = rows[{end.at("pid"), end.at("tid")}];
        const int64_t time = ns(end.at("ts"));
        CHECK(std::any_of(list.begin(), list.end(),
                          [&](const Slice& slice) { return slice.start <= time && time <= slice.end; }));
      }
    }
  }
}

TEST_CASE("a trace is valid JSON whatever names contain", "[profile]") {
  std::vector<std::string> names{"plain",
                                 "quote \" backslash \\ slash /",
                                 "</script>\n\r\t\b\f",
                                 std::string("nul \0 inside", 12),
                                 "\x01\x1F\x7F",
                                 "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80",
                                 "cut short \xC3",
                                 "not UTF-8 \xFF\xFE\xC0\xAF \xED\xA0\x80",
                                 "",
                                 "{\"ph\": \"X\"}],["};
  for (int byte = 0; byte < 256; ++byte) names.push_back(std::string(1, static_cast<char>(byte)));
  const json trace = parsed(profile_of_names(names));
  std::size_t slices = 0;
  for (const json& event : trace.at("traceEvents"))
    if (event.at("ph") == "X" && event.at("pid") == 0) {
      if (slices < 6 || slices == 9) CHECK(event.at("name") == names[slices]);
      if (slices == 6) CHECK(event.at("name") == "cut short \xEF\xBF\xBD");
      ++slices;
    }
  CHECK(slices == names.size());
  CHECK(trace.at("warnings").size() == names.size());
}

TEST_CASE("a trace says what is known of an op", "[profile]") {
  Profile profile;
  profile.threads = 1;
  profile.with_shapes = true;
  Event forward = pleat_test::event("conv2d", 1000, 3500, none, RangeKind::op, 5);
  forward.inputs = {{true, {8, 3, 32, 32}, float32, MemoryFormat::channels_last, {}}, {}};
  forward.implementation = "direct";
  forward.flops = 12;
  forward.sequence = 9;
  Event backward = forward;
  backward.name = "conv2d_backward";
  backward.kind = RangeKind::backward;
  backward.forward = 0;
  backward.start = 5000;
  backward.end = 6000;
  profile.events = {forward, backward};
  profile.memory = {{1100, 64, {}, 0}, {1200, -64, {}, 0}};
  const json trace = parsed(profile);
  const json& events = trace.at("traceEvents");
  const auto op =
      std::find_if(events.begin(), events.end(), [](const json& e) { return e.at("name") == "conv2d"; });
  REQUIRE(op != events.end());
  CHECK(op->at("cat") == "cpu_op");
  CHECK(op->at("ts") == 1.0);
  CHECK(op->at("dur") == 2.5);
  const json& args = op->at("args");
  CHECK(args.at("Input Dims") == json::parse("[[8,3,32,32],[]]"));
  CHECK(args.at("Memory formats") == json::parse(R"(["channels_last",""])"));
  CHECK(args.at("Implementation") == "direct");
  CHECK(args.at("Sequence number") == 9);
  const auto count = [&](const std::string& name) {
    return std::count_if(events.begin(), events.end(), [&](const json& e) { return e.at("name") == name; });
  };
  CHECK(count("fwdbwd") == 2);
  std::vector<int64_t> memory;
  for (const json& e : events)
    if (e.at("ph") == "C") memory.push_back(e.at("args").at("bytes"));
  CHECK(memory == std::vector<int64_t>{64, 0});
}

TEST_CASE("a trace is written as a whole or not at all", "[profile]") {
  const pleat_test::TemporaryDirectory folder;
  const std::filesystem::path file = folder.path() / "trace.json";
  const Profile profile = profile_of_names({"a", "b"});
  profile.export_chrome_trace(file);
  CHECK(json::parse(std::ifstream(file)).at("traceEvents").size() > 4);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  CHECK_THROWS_AS(profile.export_chrome_trace(folder.path() / "missing" / "trace.json"), FileError);
  const std::filesystem::path taken = folder.path() / "taken";
  std::filesystem::create_directory(taken);
  std::ofstream(taken / "file") << "x";
  CHECK_THROWS_AS(profile.export_chrome_trace(taken), FileError);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}
