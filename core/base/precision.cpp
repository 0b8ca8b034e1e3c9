#include "pleat/core/base/precision.h"

#include <atomic>

namespace pleat {
namespace {
std::atomic<Precision> process_precision{Precision::highest};
}

Precision float32_precision() {
  const Precision* scope = Scoped<Precision>::innermost();
  return scope != nullptr ? *scope : process_precision.load(std::memory_order_relaxed);
}
void set_float32_precision(Precision precision) { process_precision = precision; }

PrecisionScope::PrecisionScope(std::optional<Precision> precision) {
  if (precision.has_value()) scope_.emplace(*precision);
}

}  // namespace pleat
