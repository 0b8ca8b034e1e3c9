#include "pleat/core/precision.h"

#include <atomic>

namespace pleat {
namespace {

constexpr int unset = -1;
std::atomic<Precision> process_precision{Precision::highest};
thread_local int scope_precision = unset;

}  // namespace

Precision float32_precision() {
  return scope_precision == unset ? process_precision.load() : static_cast<Precision>(scope_precision);
}
void set_float32_precision(Precision precision) { process_precision = precision; }

PrecisionScope::PrecisionScope(Precision precision) : previous_(scope_precision) {
  scope_precision = static_cast<int>(precision);
}
PrecisionScope::~PrecisionScope() { scope_precision = previous_; }

}  // namespace pleat
