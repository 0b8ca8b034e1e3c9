#include "pleat/bench/report.h"

#include <ostream>

namespace pleat::bench {

void Report::add(const std::vector<Record>& block) {
  if (block.empty()) return;
  keep(block);
  // Flushed: a run over many problems takes minutes.
  if (out_ != nullptr) *out_ << table(block, layout_, color_) << '\n' << std::flush;
}

void Report::keep(const std::vector<Record>& block) {
  records_.insert(records_.end(), block.begin(), block.end());
}

void Report::say(const std::string& text) {
  if (out_ != nullptr) *out_ << text << "\n\n" << std::flush;
}

}  // namespace pleat::bench
