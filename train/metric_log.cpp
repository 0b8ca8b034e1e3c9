#include "pleat/train/metric_log.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"

namespace pleat::train {

void MetricLog::add(const Row& row) {
  check<ValueError>(!row.empty(), "MetricLog: a row must have figures");
  std::vector<std::string> given;
  for (const auto& [name, value] : row) given.push_back(name);
  check<ValueError>(columns_.empty() || given == names(),
                    "MetricLog: each row must have the figures {}, got {}", fmt::join(names(), " "),
                    fmt::join(given, " "));
  if (columns_.empty())
    for (const std::string& name : given) columns_.push_back({name, {}});
  for (std::size_t i = 0; i < row.size(); ++i) columns_[i].second.push_back(row[i].second);
  const std::size_t written = csv_ ? rows() - 1 : 0;
  if (!csv_) csv_.emplace(path_, names());
  for (std::size_t i = written; i < rows(); ++i) {
    std::vector<io::CsvWriter::Value> values;
    for (const auto& [name, column] : columns_) values.emplace_back(column[i]);
    csv_->row(values);
  }
}

std::vector<std::string> MetricLog::names() const {
  std::vector<std::string> names;
  for (const auto& [name, values] : columns_) names.push_back(name);
  return names;
}

const std::vector<double>& MetricLog::operator[](const std::string& name) const {
  for (const auto& [column, values] : columns_)
    if (column == name) return values;
  fail<ValueError>("MetricLog: there is no figure \"{}\", but {}", name,
                   columns_.empty() ? "none yet" : fmt::format("{}", fmt::join(names(), " ")));
}

nn::StateDict MetricLog::state_dict() const {
  nn::StateDict state;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    state.emplace(fmt::format("{}.{}", i, columns_[i].first),
                  from_vector(columns_[i].second, {static_cast<int64_t>(rows())}, Device{}));
  return state;
}

void MetricLog::load_state_dict(const nn::StateDict& state) {
  Columns columns(state.size());
  std::string problems;
  std::optional<int64_t> rows;
  for (const auto& [key, tensor] : state) {
    const std::size_t point = key.find('.');
    std::size_t place = columns.size();
    std::from_chars(key.data(), key.data() + std::min(point, key.size()), place);
    if (point == std::string::npos || place >= columns.size() ||
        key.find_first_not_of("0123456789") != point || !tensor.defined() || tensor.rank() != 1 ||
        tensor.dtype() != float64) {
      problems += fmt::format("\n  {}: must be a number below {}, a point and a name, with float64 [rows]",
                              key, columns.size());
      continue;
    }
    if (rows.value_or(tensor.size(0)) != tensor.size(0))
      problems += fmt::format("\n  {}: has another number of rows", key);
    rows = tensor.size(0);
    columns[place] = {key.substr(point + 1), tensor.to_vector<double>()};
  }
  if (problems.empty() && std::ranges::any_of(columns, [](const auto& c) { return c.first.empty(); }))
    problems = "\n  a place has no name";
  check<ValueError>(problems.empty(), "MetricLog: the state is not one of a log:{}", problems);
  columns_ = std::move(columns);
  csv_.reset();
}

}  // namespace pleat::train
