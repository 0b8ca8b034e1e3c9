#include "pleat/bench/record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pleat/core/base/format.h"
#include "pleat/core/files/json_input.h"
#include "pleat/io/csv.h"

namespace pleat::bench {
namespace {

using Json = nlohmann::ordered_json;

template <class List>
auto find(List& list, const std::string& name) {
  return std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
}

template <class List, class Value>
void set(List& list, const std::string& name, Value value) {
  const auto found = find(list, name);
  if (found == list.end())
    list.emplace_back(name, std::move(value));
  else
    found->second = std::move(value);
}

const std::string& text_of(const Record::Texts& list, const std::string& name) {
  static const std::string none;
  const auto found = find(list, name);
  return found == list.end() ? none : found->second;
}

template <class List>
Json object_of(const List& list) {
  Json object = Json::object();
  for (const auto& [name, value] : list) object[name] = value;
  return object;
}

template <class List>
List list_of(const Json& object) {
  List list;
  for (const auto& [name, value] : object.items())
    list.emplace_back(name, value.template get<typename List::value_type::second_type>());
  return list;
}

Json json_of(const Time& time) {
  return {{"median", time.median},
          {"lower_quartile", time.lower_quartile},
          {"upper_quartile", time.upper_quartile},
          {"mean", time.mean},
          {"wall_median", time.wall_median},
          {"first_call", time.first_call},
          {"tuning", time.tuning},
          {"blocks", time.blocks},
          {"runs", time.runs},
          {"threads", time.threads},
          {"cold_cache", time.cold_cache}};
}

// A whole number that its member can hold; nlohmann-json would convert any number.
template <class Whole>
void get_whole(const Json& json, const char* name, Whole& value) {
  const Json& number = json.at(name);
  const bool whole =
      number.is_number_unsigned() && number.get<uint64_t>() <= std::numeric_limits<Whole>::max();
  check<ValueError>(whole, "{} must be a whole number, got {}", name, number.dump().substr(0, 40));
  value = number.get<Whole>();
}

Time time_of(const Json& json) {
  Time time;
  json.at("median").get_to(time.median);
  json.at("lower_quartile").get_to(time.lower_quartile);
  json.at("upper_quartile").get_to(time.upper_quartile);
  json.at("mean").get_to(time.mean);
  json.at("wall_median").get_to(time.wall_median);
  json.at("first_call").get_to(time.first_call);
  json.at("tuning").get_to(time.tuning);
  get_whole(json, "blocks", time.blocks);
  get_whole(json, "runs", time.runs);
  get_whole(json, "threads", time.threads);
  json.at("cold_cache").get_to(time.cold_cache);
  for (const double seconds : {time.median, time.lower_quartile, time.upper_quartile})
    check<ValueError>(seconds >= 0, "a time must be at least 0, got {}", seconds);
  return time;
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
      cold_cache(m.cold_cache) {}

const std::string& Record::label(const std::string& name) const { return text_of(labels, name); }
const std::string& Record::detail(const std::string& name) const { return text_of(details, name); }

std::optional<double> Record::value(const std::string& name) const {
  const auto found = find(values, name);
  if (found == values.end()) return std::nullopt;
  return found->second;
}

void Record::set_label(const std::string& name, std::string text) { set(labels, name, std::move(text)); }
void Record::set_detail(const std::string& name, std::string text) { set(details, name, std::move(text)); }
void Record::set_value(const std::string& name, double number) {
  if (std::isfinite(number)) set(values, name, number);
}

std::string Record::key() const {
  std::string text = subcommand;
  for (const auto& [name, value] : labels) text += fmt::format(" | {} {}", name, value);
  return text;
}

Json to_json(const Record& record) {
  Json json{{"subcommand", record.subcommand}, {"labels", object_of(record.labels)}};
  if (!record.details.empty()) json["details"] = object_of(record.details);
  if (record.time.has_value()) json["time"] = json_of(*record.time);
  if (!record.values.empty()) json["values"] = object_of(record.values);
  if (!record.failure.empty()) json["failure"] = record.failure;
  return json;
}

Record record_from_json(const Json& json, const std::string& where) {
  try {
    Record record;
    json.at("subcommand").get_to(record.subcommand);
    record.labels = list_of<Record::Texts>(json.at("labels"));
    if (json.contains("details")) record.details = list_of<Record::Texts>(json.at("details"));
    if (json.contains("time")) record.time = time_of(json.at("time"));
    if (json.contains("values")) record.values = list_of<Record::Numbers>(json.at("values"));
    record.failure = json.value("failure", "");
    return record;
  } catch (const Json::exception& error) {
    fail<FileError>("{}: is not a result of pleat-bench: {}", where, json_cause(error));
  } catch (const ValueError& error) {
    fail<FileError>("{}: is not a result of pleat-bench: {}", where, error.what());
  }
}

void write_csv(const std::string& path, const std::vector<Record>& records) {
  using Row = std::map<std::string, io::CsvWriter::Value>;
  std::vector<std::string> columns{"subcommand"};
  std::vector<Row> rows;
  for (const Record& record : records) {
    Row row{{"subcommand", record.subcommand}};
    const auto put = [&](const std::string& name, io::CsvWriter::Value value) {
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
      row.insert_or_assign(name, std::move(value));
    };
    for (const auto& [name, text] : record.labels) put(name, text);
    for (const auto& [name, text] : record.details) put(name, text);
    const Json time = record.time.has_value() ? json_of(*record.time) : Json::object();
    for (const auto& [name, number] : time.items()) {
      if (number.is_number_float())
        put(name, number.get<double>());
      else
        put(name, number.is_boolean() ? int64_t{number.get<bool>()} : number.get<int64_t>());
    }
    for (const auto& [name, number] : record.values) put(name, number);
    if (!record.failure.empty()) put("failure", record.failure);
    rows.push_back(std::move(row));
  }
  io::CsvWriter file(path, columns);
  for (const Row& row : rows) {
    std::vector<io::CsvWriter::Value> values;
    for (const std::string& column : columns) {
      const auto found = row.find(column);
      values.push_back(found == row.end() ? io::CsvWriter::Value(std::string()) : found->second);
    }
    file.row(values);
  }
}

}  // namespace pleat::bench
