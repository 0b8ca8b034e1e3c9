#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "pleat/core/files/atomic_file.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::io {

/// Writes a table as comma-separated values (RFC 4180), a line at a time, so that the lines of an
/// interrupted program are there.
class CsvWriter {
 public:
  /// Floating numbers are written with as many digits as distinguish them; text is quoted where
  /// necessary.
  using Value = std::variant<int64_t, double, std::string>;

  /// Replaces the file by one with the line of names. A pipe or a device is written to directly
  /// (AtomicFile). Throws ValueError without columns, FileError when the file cannot be written.
  CsvWriter(const std::filesystem::path& path, std::vector<std::string> columns);

  /// Writes a line. Throws ValueError unless there is a value for each column, FileError when it cannot be
  /// written.
  void row(const std::vector<Value>& values);

 private:
  void write_line(const std::vector<Value>& values);

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  AtomicFile file_;
};

enum class ColumnType : uint8_t { int64, float64, text };

struct ReadCsvOptions {
  char sep = ',';      ///< between cells
  bool header = true;  ///< the first line has the names of the columns
  /// Of all columns, in place of the first line's; without either they are "0", "1" ...
  std::vector<std::string> names = {};
  /// Of columns that are to be something else than their cells say: {{"postcode", ColumnType::text}}.
  std::map<std::string, ColumnType> dtype = {};
  std::vector<std::string> na_values = {};  ///< cells that are missing, beside those that are empty: "NA"
  /// What a missing number is. False: NaN, for which integers become float64. True: 0, and missing() says
  /// where.
  bool mask = false;
  int64_t memory_limit = 0;  ///< see ReadOptions
};

/// The codes of a column's texts, and what they stand for.
struct Factors {
  Tensor codes;  ///< [rows] int64: the text's place in `uniques`; -1 where it is missing
  std::vector<std::string> uniques;
};

/// What a CSV file holds: columns of numbers and of text, by name. Tensors are on the CPU. Functions throw
/// ValueError for a column that there is not.
class Table {
 public:
  int64_t rows() const { return static_cast<int64_t>(lines_.size()); }
  const std::vector<std::string>& columns() const { return names_; }
  ColumnType dtype(const std::string& column) const { return find(column).type; }

  /// The numbers of a column, [rows] int64 or float64. Throws DTypeError for text.
  Tensor column(const std::string& name) const;
  /// Columns of numbers side by side, [rows, columns], of a floating type or int64: for a
  /// data::TensorDataset. Throws DTypeError for text, for another type and where float64 would be cut to
  /// int64.
  Tensor to_tensor(const std::vector<std::string>& columns, DType dtype = float32) const;
  /// Where cells of a column are missing, [rows] bool.
  Tensor missing(const std::string& column) const { return find(column).missing; }
  /// The cells of a column of text. Throws DTypeError for numbers.
  const std::vector<std::string>& text(const std::string& column) const;
  /// The classes of a column of text: each other text, in the order of their bytes, or `uniques`, as those
  /// of the table for training. Throws DTypeError for numbers, FileError for a text that is none of
  /// `uniques`. (pandas' factorize with sort=True.)
  Factors factorize(const std::string& column, std::vector<std::string> uniques = {}) const;
  /// "'labels.csv', line 7": where a row begins, for messages. Throws IndexError.
  std::string place(int64_t row) const;

 private:
  friend Table read_csv(const std::filesystem::path& path, ReadCsvOptions options);
  struct Column {
    ColumnType type = ColumnType::text;
    Tensor numbers;  ///< undefined: they are text
    std::vector<std::string> text;
    Tensor missing;
  };
  const Column& find(const std::string& column) const;

  std::string path_;
  std::vector<std::string> names_;
  std::map<std::string, Column> columns_;
  std::vector<int64_t> lines_;  ///< in which rows begin
};

/// Reads comma-separated values (RFC 4180, UTF-8). A column is int64 where all of its cells are integers,
/// float64 where they are numbers of which that type holds all digits, else text. Lines end in any way;
/// cells in quotes have separators, ends of lines and "" for a quote; empty lines are skipped. Throws
/// ValueError for options that cannot be; FileError, naming file, line and column, when the file cannot be
/// read or is empty, a line has another number of cells than the first, a name is there twice, a quote is
/// not closed, or a cell is not what `dtype` says.
Table read_csv(const std::filesystem::path& path, ReadCsvOptions options = {});

}  // namespace pleat::io
