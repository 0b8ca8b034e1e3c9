#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "pleat/core/base/format.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/files/json_input.h"
#include "pleat/ops/tune/cache.h"

namespace pleat::ops {
namespace {

using nlohmann::json;

constexpr const char* format_name = "pleat timings";
constexpr int format_version = 1;

json timing_json(const Timing& timing) {
  json result = {{"pass", timing.pass},
                 {"implementation", timing.implementation},
                 {"milliseconds", timing.milliseconds},
                 {"fastest", timing.fastest},
                 {"workspace_bytes", timing.workspace_bytes},
                 {"gflops", timing.gflops}};
  if (!timing.failure.empty()) result["failure"] = timing.failure;
  return result;
}

/// Takes values out of a file's JSON and throws errors of one style.
class Reader {
 public:
  /// `name` opens the messages.
  explicit Reader(const std::string& name) : name_(name) {}

  std::vector<TuneEntry> entries(const json& file) const {
    demand(file.is_object() && file.value("format", json()) == format_name, "it holds no timings of Pleat");
    demand(file.value("version", json()) == format_version,
           fmt::format("its version is not {}", format_version));
    std::vector<TuneEntry> result;
    std::set<std::string> seen;
    for (const json& one : list(file, "entries")) {
      result.push_back(entry(one));
      const TuneKey& key = result.back().key;
      demand(seen.insert(key.text()).second, fmt::format("it has '{}' twice", key.problem));
    }
    return result;
  }

  void demand(bool holds, const std::string& reason) const {
    check<FileError>(holds, "{}: {}", name_, reason);
  }

 private:
  const json& member(const json& object, const char* key) const {
    demand(object.is_object() && object.contains(key), fmt::format("an entry lacks '{}'", key));
    return object[key];
  }
  const json& list(const json& object, const char* key) const {
    const json& value = member(object, key);
    demand(value.is_array(), fmt::format("'{}' is no list", key));
    return value;
  }
  std::string text(const json& object, const char* key) const {
    const json& value = member(object, key);
    demand(value.is_string(), fmt::format("'{}' is no text", key));
    // The lines of a key are told apart by their ends.
    demand(value.get_ref<const std::string&>().find('\n') == std::string::npos,
           fmt::format("'{}' has several lines", key));
    return value.get<std::string>();
  }
  double number(const json& object, const char* key) const {
    const json& value = member(object, key);
    demand(value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0,
           fmt::format("'{}' is no number of 0 or more", key));
    return value.get<double>();
  }
  Timing timing(const json& one) const {
    Timing result;
    result.pass = text(one, "pass");
    result.implementation = text(one, "implementation");
    demand(!result.implementation.empty(), "an implementation has no name");
    result.milliseconds = number(one, "milliseconds");
    result.fastest = number(one, "fastest");
    const json& bytes = member(one, "workspace_bytes");
    demand(bytes.is_number_unsigned() && bytes.get<uint64_t>() <= uint64_t{1} << 62,
           "'workspace_bytes' is no number of bytes");
    result.workspace_bytes = bytes.get<int64_t>();
    result.gflops = number(one, "gflops");
    if (one.contains("failure")) {
      demand(one["failure"].is_string(), "'failure' is no text");
      result.failure = one["failure"].get<std::string>();
    }
    return result;
  }

  TuneEntry entry(const json& one) const {
    TuneEntry result{{text(one, "machine"), text(one, "versions"), text(one, "problem")}, {}};
    for (const json& each : list(one, "timings")) result.timings.push_back(timing(each));
    demand(!result.timings.empty() && result.timings.front().failure.empty(),
           fmt::format("nothing was timed for '{}'", result.key.problem));
    return result;
  }

  const std::string& name_;
};

}  // namespace

std::string tuning_text(const std::vector<TuneEntry>& entries) {
  json list = json::array();
  for (const TuneEntry& entry : entries) {
    json timings = json::array();
    for (const Timing& timing : entry.timings) timings.push_back(timing_json(timing));
    list.push_back({{"machine", entry.key.machine},
                    {"versions", entry.key.versions},
                    {"problem", entry.key.problem},
                    {"timings", std::move(timings)}});
  }
  const json file = {{"format", format_name}, {"version", format_version}, {"entries", std::move(list)}};
  // Messages of drivers need not be UTF-8.
  return file.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

std::vector<TuneEntry> read_tuning(const std::string& path, ReadOptions options) {
  const InputFile file("Tuner::load", path, options);
  return reading(file.name(), [&] {
    const json parsed = parse_json<json>(file.read_text(json_expansion), file.name());
    return Reader(file.name()).entries(parsed);
  });
}

}  // namespace pleat::ops
