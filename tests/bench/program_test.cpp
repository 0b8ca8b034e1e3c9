#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "pleat/core/memory/allocator.h"
#include "pleat/tests/bench/run.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using pleat_test::TemporaryDirectory;

using Outcome = pleat::test::BenchOutcome;
using pleat::test::has;

namespace {

Outcome run(const std::vector<std::string>& arguments) { return pleat::test::run_bench(arguments); }

/// A short measurement of two records.
const std::vector<std::string> two_records{
    "ops",       "--match", "cast/clone", "--letters", "N=2,C=4,H=3,W=3", "--quick", "--pass", "forward",
    "--seconds", "1e-4",    "--threads",  "1",         "--device",        "cpu"};

}  // namespace

TEST_CASE("pleat-bench says how it is used", "[bench]") {
  const Outcome help = run({"--help"});
  CHECK(help.status == 0);
  CHECK(has(help.out, "conv"));
  CHECK(help.err.empty());
  const Outcome of_one = run({"step", "--help"});
  CHECK(of_one.status == 0);
  CHECK(has(of_one.out, "--baseline"));
}

TEST_CASE("pleat-bench ends with status 2 for arguments that make no sense, and says which", "[bench]") {
  const auto [arguments, message] = GENERATE(table<std::vector<std::string>, std::string>({
      {std::vector<std::string>{}, "subcommand"},
      {{"nothing"}, "there is no subcommand \"nothing\"; there are: conv"},
      {{"step", "--sice", "3"}, "--sice"},
      {{"step", "--threads", "0"}, "--threads"},
      {{"step", "--threads", "two"}, "--threads"},
      {{"step", "--device", "gpu"}, "--device: must be auto, cpu, cuda or cuda:N, got \"gpu\""},
      {{"step", "--baseline", "no_such_file.json"}, "no_such_file.json"},
      {{"step", "--device", "cuda:99"}, "--device: there is no cuda:99"},
      {{"step", "--json"}, "--json"},
      {{"conv", "--match", "res"}, "--match requires --shapes (see pleat-bench conv --help)"},
      {{"step", "--threads", "20000"}, "--threads: must be a whole number from 1 to "},
      {{"step", "--threads", "010x"}, "--threads: must be a whole number"},
      {{"step", "--seconds", "nan"}, "--seconds: must be a number from 1e-06 to 3600, got \"nan\""},
      {{"step", "--seconds", "1", "--seconds", "2"}, "--seconds"},
      {{"step", "--json", ""}, "--json: must not be empty"},
      {{"step", "--csv", ""}, "--csv: must not be empty"},
      {{"step", "--baseline", ""}, "--baseline"},
      {{"conv", "--shapes", ""}, "--shapes: must not be empty"},
      {{"conv", "--batch", "1,,2"}, "--batch: must be names, separated by commas, got \"1,,2\""},
      {{"conv", "--batch", "1e3"}, "conv: --batch: must be a whole number from 1 to 16777216, got \"1e3\""},
      {{"conv", "--pass", "backward_input", "--bias"}, "conv: --bias: is added in the forward pass"},
      {{"conv", "--json", "same", "--csv", "./same"}, "--json and --csv are the same file"},
      {{"conv", "--dtype", "float32,float32"}, "--dtype: \"float32\" is there twice"},
      {{"step", "--batch-size", "0"}, "step: --batch-size: must be a whole number from 1"},
      {{"list", "--seconds", "3"}, "not expected: 3 --seconds (see pleat-bench list --help)"},
      {{"ask", ""}, "must not be empty"},
  }));
  CAPTURE(arguments);
  const Outcome outcome = run(arguments);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK(has(outcome.err, "pleat-bench: "));
  CHECK(has(outcome.err, message));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

TEST_CASE("pleat-bench writes what it found as JSON and CSV", "[bench]") {
  const TemporaryDirectory folder;
  const std::string json = (folder / "a.json").generic_string();  // which needs no quotes
  auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = two_records;
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const Outcome first = with({"--json", json, "--csv", (folder / "a.csv").generic_string()});
  CHECK(first.status == 0);
  CHECK(has(first.out, "cast/clone 2x4x3x3"));
  CHECK(has(first.out, "measured ceilings: FMA float32 "));
  CHECK(has(first.out, "1 thread\n"));
  const auto bytes = pleat_test::read_bytes(json);
  const auto parsed = nlohmann::json::parse(bytes);
  CHECK(parsed["results"].size() == 2);
  CHECK(parsed["results"][0]["time"]["median"] > 0);
  CHECK(parsed["command"] ==
        "pleat-bench ops --match cast/clone --letters N=2,C=4,H=3,W=3 --quick --pass forward --seconds 1e-4 "
        "--threads 1 --device cpu --json " +
            json + " --csv " + (folder / "a.csv").generic_string());
  const auto csv = pleat_test::read_bytes(folder / "a.csv");
  const std::string csv_text(csv.begin(), csv.end());
  CHECK(has(csv_text, "subcommand,problem,pass,format,device,median,lower_quartile"));
  CHECK(std::count(csv_text.begin(), csv_text.end(), '\n') == 3);

  const Outcome second = with({"--baseline", json});
  CHECK(second.status == 0);
  CHECK(has(second.out, "compared with " + json));
  CHECK(has(second.out, "0 new, 0 no longer there"));

  const Outcome piped = with({"--json", "-"});
  CHECK(piped.status == 0);
  CHECK(nlohmann::json::parse(piped.out)["results"].size() == 2);
}

TEST_CASE("pleat-bench names a baseline that it cannot read, before it measures", "[bench]") {
  const TemporaryDirectory folder;
  const std::string path = (folder / "broken.json").string();
  pleat_test::write_bytes(path, "{\"results\": []");
  const Outcome broken = run({"step", "--baseline", path});
  CHECK(broken.status == 1);
  CHECK(broken.out.empty());
  CHECK(has(broken.err, path + "': is not a result of pleat-bench"));
  pleat_test::write_bytes(path, "{\"pleat_bench\": 7}");
  CHECK(has(run({"step", "--baseline", path}).err, path + "': is of version 7, this pleat-bench reads 2"));
}

TEST_CASE("pleat-bench says what it could not write, draw or compare before it measures", "[bench]") {
  const TemporaryDirectory folder;
  const std::string nowhere = (folder / "no folder" / "a").string();
  const std::string of_others = (folder / "a.json").string();
  pleat_test::write_bytes(
      of_others, R"({"pleat_bench": 2, "machine": "", "command": "", "time_unit": "s", "results": []})");
  struct Case {
    std::vector<std::string> arguments;
    int status;
    std::string message;
  };
  for (const auto& [arguments, status, message] : std::vector<Case>{
           {{"conv", "--json", nowhere}, 1, "--json: cannot write '" + nowhere + "'"},
           {{"conv", "--csv", nowhere}, 1, "--csv: cannot write '" + nowhere + "'"},
           {{"conv", "--plot", nowhere}, 1, "--plot: cannot write '" + nowhere + "'"},
           {{"conv", "--plot", folder.path().string()}, 1, "is a folder, not a regular file"},
           {{"conv", "--baseline", of_others}, 2, "--baseline: " + of_others + " has no results of conv"}}) {
    CAPTURE(arguments);
    const Outcome outcome = run(arguments);
    CHECK(outcome.status == status);
    CHECK(outcome.out.empty());
    CHECK(has(outcome.err, message));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
  // Only the baseline is there.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("pleat-bench ends with status 1 when nothing could be measured", "[bench]") {
  const Outcome outcome = run({"ops", "--match", "^norm/group_norm 2x3", "--letters", "N=2,C=3,H=4,W=4",
                               "--quick", "--seconds", "1e-4", "--device", "cpu"});
  CHECK(outcome.status == 1);
  CHECK(has(outcome.out, "8 groups do not divide"));
  CHECK(has(outcome.err, "pleat-bench: ops: nothing could be measured: group_norm: 8 groups do not divide"));
}

TEST_CASE("pleat-bench --fresh-memory: nothing comes from the cache of the allocator", "[bench]") {
  const auto hits_of = [&](std::vector<std::string> all) {
    const int64_t before = pleat::allocator_statistics().hits;
    CHECK(run(all).status == 0);
    return pleat::allocator_statistics().hits - before;
  };
  CHECK(hits_of(two_records) > 0);
  std::vector<std::string> fresh = two_records;
  fresh.emplace_back("--fresh-memory");
  CHECK(hits_of(fresh) == 0);
  pleat::set_cache_limit(int64_t{1} << 30);
}
