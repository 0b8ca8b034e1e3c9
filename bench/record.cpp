// Records as JSON, which baselines are read from, and as CSV.
#include "pleat/bench/record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "pleat/core/base/format.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/files/json_input.h"
#include "pleat/io/csv.h"

namespace pleat::bench {
namespace {

/// The value of that name; null where there is none.
template <class List>
auto find(List& list, const std::string& name) -> decltype(&list.front().second) {
  for (auto& [key, value] : list)
    if (key == name) return &value;
  return nullptr;
}

template <class List, class Value>
void set(List& list, const std::string& name, Value value) {
  if (auto* known = find(list, name))
    *known = std::move(value);
  else
    list.emplace_back(name, std::move(value));
}

using Json = nlohmann::ordered_json;

constexpr int version = 2;

template <class List>
Json object_of(const List& list) {
  Json object = Json::object();
  for (const auto& [name, value] : list) object[name] = value;
  return object;
}

template <class List>
void get_list(const Json& json, const char* name, List& list) {
  if (!json.contains(name)) return;
  for (const auto& [key, value] : json.at(name).items())
    list.emplace_back(key, value.template get<typename List::value_type::second_type>());
}

Json json_of(const benchmark::Measurement& m) {
  return {{"median", m.median()},
          {"lower_quartile", m.lower_quartile()},
          {"upper_quartile", m.upper_quartile()},
          {"first_call", m.first_call},
          {"tuning", m.tuning},
          {"block_size", m.block_size},
          {"threads", m.threads},
          {"cold_cache", m.cold_cache},
          {"runs", m.runs()},
          {"times", m.times}};
}

benchmark::Measurement time_of(const Json& json) {
  benchmark::Measurement time;
  const auto whole = [&](const char* name, auto& value) {
    const Json& number = json.at(name);
    // nlohmann-json would convert any number to a whole one.
    check<ValueError>(
        number.is_number_unsigned() && number.get<uint64_t>() <= std::numeric_limits<int>::max(),
        "{} must be a whole number, got {}", name, number.dump().substr(0, 40));
    number.get_to(value);
  };
  whole("block_size", time.block_size);
  whole("threads", time.threads);
  json.at("first_call").get_to(time.first_call);
  json.at("tuning").get_to(time.tuning);
  json.at("cold_cache").get_to(time.cold_cache);
  json.at("times").get_to(time.times);
  check<ValueError>(!time.times.empty(), "there must be times");
  for (const double seconds : time.times)
    check<ValueError>(seconds >= 0, "a time must be at least 0, got {}", seconds);
  return time;
}

Json json_of(const Record& record) {
  Json json{{"subcommand", record.subcommand}, {"labels", object_of(record.labels)}};
  if (!record.details.empty()) json["details"] = object_of(record.details);
  if (record.time) json["time"] = json_of(*record.time);
  if (!record.values.empty()) json["values"] = object_of(record.values);
  if (!record.failure.empty()) json["failure"] = record.failure;
  return json;
}

Record record_of(const Json& json) {
  Record record{.subcommand = json.at("subcommand"), .labels = {}};
  get_list(json, "labels", record.labels);
  get_list(json, "details", record.details);
  get_list(json, "values", record.values);
  if (json.contains("time")) record.time = time_of(json.at("time"));
  record.failure = json.value("failure", "");
  return record;
}

}  // namespace

const std::string& Record::label(const std::string& name) const {
  static const std::string none;
  const std::string* found = find(labels, name);
  if (found == nullptr) found = find(details, name);
  return found != nullptr ? *found : none;
}

std::optional<double> Record::value(const std::string& name) const {
  const double* found = find(values, name);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

void Record::set_detail(const std::string& name, std::string text) { set(details, name, std::move(text)); }
void Record::set_value(const std::string& name, double number) {
  if (std::isfinite(number)) set(values, name, number);
}

std::string Record::key() const {
  Texts sorted = labels;
  std::sort(sorted.begin(), sorted.end());
  std::string text = subcommand;
  for (const auto& [name, value] : sorted)
    if (!value.empty()) text += " | " + name + ' ' + value;
  return text;
}

std::string to_text(const Results& results) {
  Json records = Json::array();
  for (const Record& record : results.records) records.push_back(json_of(record));
  const Json json{{"pleat_bench", version},
                  {"machine", results.machine},
                  {"command", results.command},
                  {"time_unit", "s"},
                  {"results", std::move(records)}};
  // Names of files need not be UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Results results_from_text(const std::string& text, const std::string& where) {
  check_json_size(text, where);
  const auto is_none = [&](const std::string& why) {
    fail<FileError>("{}: is not a result of pleat-bench{}", where, why.empty() ? "" : ": " + why);
  };
  try {
    const Json json = Json::parse(text);
    if (!json.is_object() || !json.contains("pleat_bench")) is_none("");
    check<FileError>(json["pleat_bench"] == version, "{}: is of version {}, this pleat-bench reads {}", where,
                     json["pleat_bench"].dump(), version);
    Results results{json.at("machine"), json.at("command"), {}};
    for (const Json& record : json.at("results")) results.records.push_back(record_of(record));
    return results;
  } catch (const Json::exception& error) {
    is_none(json_cause(error));
  } catch (const ValueError& error) {
    is_none(error.what());
  }
  return {};
}

Results read_results(const std::filesystem::path& path) {
  const InputFile file("--baseline", path);
  return reading(file.name(), [&] { return results_from_text(file.read_text(json_expansion), file.name()); });
}

void write_csv(const std::string& path, const std::vector<Record>& records) {
  using Value = io::CsvWriter::Value;
  std::vector<std::string> columns;
  std::vector<std::map<std::string, Value>> rows;
  for (const Record& record : records) {
    auto& row = rows.emplace_back();
    Json json = json_of(record);
    if (record.time) json["time"].erase("times");
    // "/time/median": the column is "median".
    const Json flat = json.flatten();
    for (const auto& [place, value] : flat.items()) {
      if (value.is_null()) continue;  // an empty object
      const std::string column = place.substr(place.rfind('/') + 1);
      if (std::find(columns.begin(), columns.end(), column) == columns.end()) columns.push_back(column);
      row[column] = value.is_string()         ? Value(value.get<std::string>())
                    : value.is_number_float() ? Value(value.get<double>())
                    : value.is_boolean()      ? Value(int64_t{value.get<bool>()})
                                              : Value(value.get<int64_t>());
    }
  }
  io::CsvWriter file(path, columns.empty() ? std::vector<std::string>{"subcommand"} : columns);
  for (auto& row : rows) {
    std::vector<Value> values;
    for (const std::string& column : columns)
      values.push_back(row.count(column) > 0 ? row[column] : std::string());
    file.row(values);
  }
}

}  // namespace pleat::bench
