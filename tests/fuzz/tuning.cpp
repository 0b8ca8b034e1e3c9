// Files of convolution timings. What is read can be written, and reads back the same.
#include "pleat/ops/tune/cache.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

namespace {

bool same(const std::vector<ops::TuneEntry>& a, const std::vector<ops::TuneEntry>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i].key == b[i].key) || !(a[i].timings == b[i].timings)) return false;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const fuzz::InputAsFile file(data, size);
  std::vector<ops::TuneEntry> entries;
  if (!fuzz::accepts([&] { entries = ops::read_tuning(file.path().string(), fuzz::limited); })) return 0;
  const std::string text = ops::tuning_text(entries);
  const fuzz::InputAsFile written(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  fuzz::require(same(entries, ops::read_tuning(written.path().string())),
                "tuning: other entries after writing and reading");
  return 0;
}
