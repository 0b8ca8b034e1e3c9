// Results of pleat-bench, as --json writes and --baseline reads them.
#include "pleat/bench/record.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const fuzz::InputAsFile file(data, size);
  bench::Results results;
  if (!fuzz::accepts([&] { results = bench::read_results(file.path()); })) return 0;
  const bench::Results again = bench::results_from_text(bench::to_text(results), "again");
  fuzz::require(bench::to_text(again) == bench::to_text(results),
                "results: others after writing and reading");
  return 0;
}
