#include "pleat/bench/record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
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

constexpr int version = 1;

template <class List>
Json object_of(const List& list) {
  Json object = Json::object();
  for (const auto& [name, value] : list) object[name] = value;
  return object;
}

template <class List>
void get_list(const Json& json, List& list) {
  for (const auto& [name, value] : json.items())
    list.emplace_back(name, value.template get<typename List::value_type::second_type>());
}

Time time_of(const Json& json) {
  Time time;
  for_each_member(time, [&]<class Value>(const char* name, Value& value) {
    const Json& number = json.at(name);
    // nlohmann-json would convert any number to a whole one.
    if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>)
      check<ValueError>(
          number.is_number_unsigned() && number.get<uint64_t>() <= std::numeric_limits<Value>::max(),
          "{} must be a whole number, got {}", name, number.dump().substr(0, 40));
    value = number.get<Value>();
  });
  for (const double seconds : {time.median, time.lower_quartile, time.upper_quartile})
    check<ValueError>(seconds >= 0, "a time must be at least 0, got {}", seconds);
  return time;
}

Json json_of(const Record& record) {
  Json json{{"subcommand", record.subcommand}, {"labels", object_of(record.labels)}};
  if (!record.details.empty()) json["details"] = object_of(record.details);
  if (record.time)
    for_each_member(*record.time, [&](const char* name, auto value) { json["time"][name] = value; });
  if (!record.values.empty()) json["values"] = object_of(record.values);
  if (!record.failure.empty()) json["failure"] = record.failure;
  return json;
}

Record record_of(const Json& json) {
  Record record;
  json.at("subcommand").get_to(record.subcommand);
  get_list(json.at("labels"), record.labels);
  if (json.contains("details")) get_list(json.at("details"), record.details);
  if (json.contains("time")) record.time = time_of(json.at("time"));
  if (json.contains("values")) get_list(json.at("values"), record.values);
  record.failure = json.value("failure", "");
  return record;
}

}  // namespace

Time::Time(const benchmark::Measurement& m)
    : median(m.median()),
      lower_quartile(m.lower_quartile()),
      upper_quartile(m.upper_quartile()),
      mean(m.mean()),
      wall_median(m.wall_median()),
      first_call(m.first_call),
      tuning(m.tuning),
      blocks(static_cast<int64_t>(m.times.size())),
      runs(m.runs()),
      threads(m.threads),
      cold_cache(m.cold_cache),
      rounds(m.times) {}

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

void Record::set_label(const std::string& name, std::string text) { set(labels, name, std::move(text)); }
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
    Results results;
    json.at("machine").get_to(results.machine);
    json.at("command").get_to(results.command);
    for (const Json& record : json.at("results")) results.records.push_back(record_of(record));
    return results;
  } catch (const Json::exception& error) {
    is_none(json_cause(error));
  } catch (const ValueError& error) {
    is_none(error.what());
  }
  return {};
}

void write_results(const std::filesystem::path& path, const Results& results) {
  write_file("--json", path, to_text(results));
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
    const Json members = json_of(record).flatten();
    // "/time/median": the column is "median".
    for (const auto& [place, value] : members.items()) {
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
