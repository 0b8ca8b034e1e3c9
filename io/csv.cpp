#include "pleat/io/csv.h"

#include <cmath>

#include <fmt/format.h>

#include "pleat/core/base/format.h"

namespace pleat::io {
namespace {

std::string field(const CsvWriter::Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<double>(&value)) {
    // An integer is written as one, with all digits: the shortest form of 2^60 is 1.152921504606847e+18.
    const double size = std::abs(*number);
    return size >= 0x1p53 && size < 0x1p63 ? fmt::format("{}", static_cast<int64_t>(*number))
                                           : fmt::format("{}", *number);
  }
  const std::string& text = std::get<std::string>(value);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::vector<std::string> at_least_one(std::vector<std::string> columns) {
  check<ValueError>(!columns.empty(), "CsvWriter: a table needs at least one column");
  return columns;
}

}  // namespace

CsvWriter::CsvWriter(const std::filesystem::path& path, std::vector<std::string> columns)
    : path_(path), columns_(at_least_one(std::move(columns))), file_("CsvWriter", path) {
  write_line({columns_.begin(), columns_.end()});
  file_.commit();
}

void CsvWriter::row(const std::vector<Value>& values) {
  check<ValueError>(values.size() == columns_.size(), "CsvWriter: a row of '{}' needs {} values ({}), got {}",
                    path_.string(), columns_.size(), fmt::join(columns_, ", "), values.size());
  write_line(values);
}

void CsvWriter::write_line(const std::vector<Value>& values) {
  std::string line;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) line += ',';
    line += field(values[i]);
  }
  file_.write(line + '\n');
}

}  // namespace pleat::io
