#include "pleat/bench/results_file.h"

#include <nlohmann/json.hpp>

#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/files/json_input.h"

namespace pleat::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int version = 1;

}  // namespace

std::string to_text(const Results& results) {
  Json records = Json::array();
  for (const Record& record : results.records) records.push_back(to_json(record));
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
  try {
    const Json json = Json::parse(text);
    check<FileError>(json.is_object() && json.contains("pleat_bench"), "{}: is not a result of pleat-bench",
                     where);
    check<FileError>(json["pleat_bench"] == version, "{}: is of version {}, this pleat-bench reads {}", where,
                     json["pleat_bench"].dump(), version);
    Results results;
    json.at("machine").get_to(results.machine);
    json.at("command").get_to(results.command);
    for (const Json& record : json.at("results")) results.records.push_back(record_from_json(record, where));
    return results;
  } catch (const Json::exception& error) {
    fail<FileError>("{}: is not a result of pleat-bench: {}", where, json_cause(error));
  }
}

void write_results(const std::filesystem::path& path, const Results& results) {
  write_file("--json", path, to_text(results));
}

Results read_results(const std::filesystem::path& path) {
  const InputFile file("--baseline", path);
  return reading(file.name(), [&] { return results_from_text(file.read_text(json_expansion), file.name()); });
}

}  // namespace pleat::bench
