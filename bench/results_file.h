#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pleat/bench/record.h"

namespace pleat::bench {

/// What --json writes.
struct Results {
  std::string machine;  ///< describe_machine
  std::string command;  ///< the command line, as it can be given again
  std::vector<Record> records;
};

std::string to_text(const Results& results);
/// Throws FileError, naming `where`, for what is no result of pleat-bench.
Results results_from_text(const std::string& text, const std::string& where);

/// The file is replaced as a whole or not at all. Throws FileError.
void write_results(const std::filesystem::path& path, const Results& results);
Results read_results(const std::filesystem::path& path);

/// Everything as a table for spreadsheets: a column for each name that occurs, empty where a record has none.
/// Throws FileError when the file cannot be written.
void write_csv(const std::string& path, const std::vector<Record>& records);

}  // namespace pleat::bench
