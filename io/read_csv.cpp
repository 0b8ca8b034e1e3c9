#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/io/byte_source.h"
#include "pleat/io/csv.h"

namespace pleat::io {
namespace {

// A cell takes a byte of the file at least, and becomes its view, its number or text and its place in a mask.
constexpr int64_t expansion = 96;
constexpr int64_t bytes_a_column = 1024;  // beside its cells

/// The cells of a text, row after row.
struct Cells {
  std::vector<std::string_view> all;
  std::vector<int64_t> lines;  ///< in which rows begin
  std::size_t columns = 0;
};

/// Splits a text, in which cells in quotes are rewritten as what they say.
class Splitter {
 public:
  Splitter(const std::string& name, std::string& text, char sep) : name_(name), text_(text), sep_(sep) {}

  Cells split() {
    Cells cells;
    while (at_ < text_.size()) {
      const int64_t line = line_;
      const std::size_t before = cells.all.size();
      const bool quoted = text_[at_] == '"';
      cells.all.push_back(cell());
      for (; at_ < text_.size() && text_[at_] == sep_; cells.all.push_back(cell())) ++at_;
      end_line();
      const std::size_t count = cells.all.size() - before;
      if (count == 1 && !quoted && cells.all.back().find_first_not_of(' ') == std::string_view::npos) {
        cells.all.pop_back();
        continue;
      }
      if (cells.lines.empty()) cells.columns = count;
      check<FileError>(count == cells.columns,
                       "{}, line {}: has {} cells where line {} has {}; put those with a '{}' into quotes, "
                       "or name another .sep",
                       name_, line, count, cells.lines.empty() ? line : cells.lines.front(), cells.columns,
                       sep_);
      cells.lines.push_back(line);
    }
    return cells;
  }

 private:
  bool at_end_of_cell() const {
    return at_ == text_.size() || text_[at_] == sep_ || text_[at_] == '\n' || text_[at_] == '\r';
  }

  std::string_view cell() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_cell();
    const std::size_t begin = at_;
    while (!at_end_of_cell()) ++at_;
    return std::string_view(text_).substr(begin, at_ - begin);
  }

  std::string_view quoted_cell() {
    const int64_t line = line_;
    const std::size_t begin = at_++;
    std::size_t end = begin;
    while (true) {
      check<FileError>(at_ < text_.size(), "{}, line {}: a quote opens here that is not closed", name_, line);
      if (text_[at_] == '"' && text_[++at_] != '"') break;  // behind the end stands a 0
      if (text_[at_] == '\n') ++line_;
      text_[end++] = text_[at_++];
    }
    check<FileError>(at_end_of_cell(), "{}, line {}: text follows a closing quote; a quote inside is \"\"",
                     name_, line_);
    return std::string_view(text_).substr(begin, end - begin);
  }

  void end_line() {
    if (at_ < text_.size() && text_[at_] == '\r' && text_[at_ + 1] == '\n') ++at_;
    ++at_;
    ++line_;
  }

  const std::string& name_;
  std::string& text_;
  char sep_;
  std::size_t at_ = 0;
  int64_t line_ = 1;
};

std::string_view trimmed(std::string_view cell) {
  const std::size_t begin = std::min(cell.find_first_not_of(' '), cell.size());
  return cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin);
}

/// The number that a cell is as a whole.
template <class T>
std::optional<T> number(std::string_view cell) {
  cell = trimmed(cell);
  if (cell.size() > 1 && cell[0] == '+' && cell[1] != '-') cell.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

/// Whether a float64 has all digits of a cell that is an integer; of other numbers it has the nearest.
bool holds_digits(std::string_view cell) {
  if (trimmed(cell).find_first_not_of("+-0123456789") != std::string_view::npos) return true;
  const auto whole = number<int64_t>(cell);
  return whole && *whole >= -(int64_t{1} << 53) && *whole <= int64_t{1} << 53;
}

/// The cells of one column.
struct ColumnCells {
  const Cells& cells;
  std::size_t column;
  std::vector<bool> missing = {};

  std::size_t rows() const { return cells.lines.size(); }
  std::string_view operator[](std::size_t row) const { return cells.all[row * cells.columns + column]; }

  /// What the cells say.
  ColumnType type(bool mask) const {
    bool none = true, all = true, integers = true, digits = true;
    for (std::size_t row = 0; row < rows(); ++row) {
      all = all && !missing[row];
      if (missing[row]) continue;
      const std::string_view cell = (*this)[row];
      if (!number<double>(cell)) return ColumnType::text;
      none = false;
      integers = integers && number<int64_t>(cell);
      digits = digits && holds_digits(cell);
    }
    if (integers && !none && (all || mask)) return ColumnType::int64;
    return digits ? ColumnType::float64 : ColumnType::text;
  }

  /// The numbers, or the first row that has none.
  template <class T>
  std::size_t read_numbers(std::optional<T> of_missing, Tensor& to) const {
    std::vector<T> numbers;
    numbers.reserve(rows());
    for (std::size_t row = 0; row < rows(); ++row) {
      const std::optional<T> found = missing[row] ? of_missing : number<T>((*this)[row]);
      if (!found) return row;
      numbers.push_back(*found);
    }
    to = from_vector(numbers, {static_cast<int64_t>(rows())}, Device{});
    return rows();
  }
};

}  // namespace

Table read_csv(const std::filesystem::path& path, ReadCsvOptions options) {
  check<ValueError>(std::string_view("\"\r\n\0", 4).find(options.sep) == std::string_view::npos,
                    "read_csv: sep must be a character that is no quote and ends no line");
  const InputFile file("read_csv", path, {.memory_limit = options.memory_limit});
  return reading(file.name(), [&] {
    const std::string& name = file.name();
    std::string text = file.read_text(expansion);
    Cells cells = Splitter(name, text, options.sep).split();
    check<FileError>(cells.columns > 0, "{}: is empty", name);
    if (const auto bytes = static_cast<int64_t>(cells.columns) * bytes_a_column; bytes > file.memory().left())
      file.fail_at(
          0, above_memory_limit(fmt::format("a table of {} columns", cells.columns), bytes, file.memory()));
    Table table;
    table.path_ = path.string();
    for (std::size_t i = 0; i < cells.columns; ++i) table.names_.push_back(std::to_string(i));
    if (options.header) {
      const auto end = cells.all.begin() + static_cast<std::ptrdiff_t>(cells.columns);
      table.names_.assign(cells.all.begin(), end);
      cells.all.erase(cells.all.begin(), end);
      cells.lines.erase(cells.lines.begin());
    }
    if (!options.names.empty()) {
      check<FileError>(options.names.size() == cells.columns, "{}: has {} columns, and there are {} names",
                       name, cells.columns, options.names.size());
      table.names_ = options.names;
    }
    table.lines_ = cells.lines;
    std::set<std::string> seen;
    for (const std::string& column : table.names_)
      check<FileError>(seen.insert(column).second,
                       "{}: there are two columns {}; give each a name of its own by .names", name,
                       printable(column));
    for (const auto& [column, type] : options.dtype)
      check<FileError>(seen.contains(column), "{}: has no column {}, of which dtype says the type, but {}",
                       name, printable(column), fmt::join(table.names_, ", "));
    for (std::size_t i = 0; i < table.names_.size(); ++i) {
      const std::string& column_name = table.names_[i];
      ColumnCells own{cells, i};
      for (std::size_t row = 0; row < own.rows(); ++row) {
        const std::string_view cell = trimmed(own[row]);
        own.missing.push_back(cell.empty() ||
                              std::ranges::find(options.na_values, cell) != options.na_values.end());
      }
      const auto asked = options.dtype.find(column_name);
      Table::Column& column = table.columns_[column_name];
      column.type = asked == options.dtype.end() ? own.type(options.mask) : asked->second;
      column.missing = from_vector(own.missing, {table.rows()}, Device{});
      std::size_t bad = own.rows();
      if (column.type == ColumnType::text)
        for (std::size_t row = 0; row < own.rows(); ++row) column.text.emplace_back(own[row]);
      else if (column.type == ColumnType::float64)
        bad = own.read_numbers<double>(options.mask ? 0 : std::numeric_limits<double>::quiet_NaN(),
                                       column.numbers);
      else
        bad = own.read_numbers<int64_t>(options.mask ? std::optional<int64_t>(0) : std::nullopt,
                                        column.numbers);
      if (bad < own.rows())
        fail<FileError>("{}, line {}, column {}: {} is no {}{}", name, cells.lines[bad],
                        printable(column_name), own.missing[bad] ? "a missing cell" : printable(own[bad]),
                        column.type == ColumnType::int64 ? "int64" : "float64",
                        own.missing[bad] ? "; ask for float64, which has NaN, or for .mask = true"
                                         : "; ask for text, or name it in .na_values");
    }
    return table;
  });
}

const Table::Column& Table::find(const std::string& column) const {
  const auto found = columns_.find(column);
  check<ValueError>(found != columns_.end(), "read_csv: '{}' has no column {}, but {}", path_,
                    printable(column), fmt::join(names_, ", "));
  return found->second;
}

Tensor Table::column(const std::string& name) const {
  const Column& column = find(name);
  std::size_t row = 0;
  while (row < column.text.size() && (column.missing.data<bool>()[row] || number<double>(column.text[row])))
    ++row;
  check<DTypeError>(column.type != ColumnType::text,
                    "read_csv: column {} of '{}' is text{}; factorize() makes classes of it", printable(name),
                    path_, [&] {
                      return row < column.text.size()
                                 ? fmt::format(": line {} has {}", lines_[row], printable(column.text[row]))
                                 : "";
                    });
  return column.numbers;
}

Tensor Table::to_tensor(const std::vector<std::string>& columns, DType dtype) const {
  check<DTypeError>(is_floating(dtype) || dtype == int64, "Table: needs a floating type or int64, got {}",
                    dtype);
  const auto count = static_cast<int64_t>(columns.size());
  const Tensor result = empty({rows(), count}, {.dtype = dtype, .device = Device{}});
  for (int64_t i = 0; i < count; ++i) {
    const std::string& name = columns[static_cast<std::size_t>(i)];
    const Tensor numbers = column(name);
    check<DTypeError>(
        dtype != int64 || numbers.dtype() == int64,
        "Table: column {} of '{}' is float64, of which int64 would lose digits; take a floating type",
        printable(name), path_);
    ops::copy_into(result.as_strided({rows()}, {count}, i), numbers);
  }
  return result;
}

const std::vector<std::string>& Table::text(const std::string& name) const {
  const Column& column = find(name);
  check<DTypeError>(column.type == ColumnType::text,
                    "read_csv: column {} of '{}' is of numbers; ask for its text: .dtype = {{{{{}, "
                    "ColumnType::text}}}}",
                    printable(name), path_, printable(name));
  return column.text;
}

Factors Table::factorize(const std::string& name, std::vector<std::string> uniques) const {
  const std::vector<std::string>& cells = text(name);
  const auto* missing = find(name).missing.data<bool>();
  std::map<std::string_view, int64_t> codes;
  if (uniques.empty()) {
    std::set<std::string> found;
    for (std::size_t row = 0; row < cells.size(); ++row)
      if (!missing[row]) found.insert(cells[row]);
    uniques.assign(found.begin(), found.end());
  }
  for (std::size_t i = 0; i < uniques.size(); ++i) codes.emplace(uniques[i], i);
  std::vector<int64_t> of_rows;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    const auto code = codes.find(cells[row]);
    check<FileError>(missing[row] || code != codes.end(), "{}, column {}: {} is none of {}",
                     place(static_cast<int64_t>(row)), printable(name), printable(cells[row]),
                     fmt::join(uniques, ", "));
    of_rows.push_back(missing[row] ? -1 : code->second);
  }
  return {from_vector(of_rows, {rows()}, Device{}), std::move(uniques)};
}

std::string Table::place(int64_t row) const {
  check<IndexError>(row >= 0 && row < rows(), "Table: row {} of {}", row, rows());
  return fmt::format("'{}', line {}", path_, lines_[static_cast<std::size_t>(row)]);
}

}  // namespace pleat::io
