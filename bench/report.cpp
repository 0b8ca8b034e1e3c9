#include "pleat/bench/report.h"

#include <cerrno>
#include <cstring>
#include <ostream>

#include "pleat/core/format.h"

namespace pleat::bench {

void put(std::ostream& out, const std::string& text) {
  errno = 0;
  out << text << std::flush;
  check<FileError>(out.good(), "cannot write to standard output{}{}", errno != 0 ? ": " : "",
                   errno != 0 ? std::strerror(errno) : "");
}

void Report::add(const std::vector<Record>& block) {
  if (block.empty()) return;
  keep(block);
  if (out_ != nullptr) put(*out_, table(block, layout_, color_) + '\n');
}

void Report::keep(const std::vector<Record>& block) {
  records_.insert(records_.end(), block.begin(), block.end());
}

void Report::say(const std::string& text) {
  if (out_ != nullptr) put(*out_, text + "\n\n");
}

}  // namespace pleat::bench
