// Files of engines (inference/inference.h). What is loaded computes, or says why not.
#include <optional>

#include "pleat/core/tensor/create.h"
#include "pleat/inference/inference.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const fuzz::InputAsFile file(data, size);
  std::optional<Inference> engine;
  if (!fuzz::accepts([&] { engine.emplace(Inference::load(file.path())); })) return 0;
  fuzz::require(!engine->summary().empty(), "engine: no plan");
  (void)fuzz::accepts([&] { (void)(*engine)(ones({1, 1, 6, 6})); });
  return 0;
}
