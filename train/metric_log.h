#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/io/csv.h"
#include "pleat/nn/state_dict.h"

namespace pleat::train {

/// Figures of a run, a row for each epoch, also as a CSV file. The rows are a part of checkpoints: a
/// run that goes on has those up to its checkpoint, and its file is written anew with them at the next
/// row. Loading alone writes nothing: of several processes that load, the one that adds rows writes.
///
///   train::MetricLog log{"runs/mine/metrics.csv"};
///   checkpoints.add("metrics", log);
///   log.add({{"epoch", epoch}, {"loss", loss}, {"test_accuracy", accuracy}});
class MetricLog {
 public:
  using Row = std::vector<std::pair<std::string, Real>>;

  /// The file is made by the first row.
  explicit MetricLog(std::filesystem::path csv) : path_(std::move(csv)) {}

  /// Throws ValueError when the row is empty or its names are not those of the first row in their
  /// order, and for an integer beyond 2^53 that float64 would round; FileError when the file cannot be
  /// written.
  void add(const Row& row);

  std::size_t rows() const { return columns_.empty() ? 0 : columns_[0].second.size(); }
  /// The names in their order.
  std::vector<std::string> names() const;
  /// A value for each row. Throws ValueError when there is no such name.
  const std::vector<double>& operator[](const std::string& name) const;

  /// "0.epoch", "1.loss" ...: float64 [rows].
  nn::StateDict state_dict() const;
  /// Throws ValueError with all problems, before anything is changed.
  void load_state_dict(const nn::StateDict& state);

 private:
  using Columns = std::vector<std::pair<std::string, std::vector<double>>>;

  std::filesystem::path path_;
  Columns columns_;
  std::optional<io::CsvWriter> csv_;  // from the first row that is added, and anew after loading
};

}  // namespace pleat::train
