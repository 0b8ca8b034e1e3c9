#include "pleat/bench/report.h"

#include <cerrno>
#include <cstring>
#include <ostream>
#include <utility>

#include "pleat/core/base/format.h"

namespace pleat::bench {

void put(std::ostream& out, const std::string& text) {
  errno = 0;
  out << text << std::flush;
  check<FileError>(out.good(), "cannot write to standard output{}{}", errno != 0 ? ": " : "",
                   errno != 0 ? std::strerror(errno) : "");
}

void Report::set_layout(Layout layout) {
  layout_ = std::move(layout);
  show("");
}

void Report::show(const std::string& text) {
  if (out_ == nullptr) return;
  if (const std::string opening = std::exchange(opening_, {}); !opening.empty()) put(*out_, opening + "\n\n");
  put(*out_, text);
}

void Report::add(const std::vector<Record>& block) {
  if (block.empty()) return;
  keep(block);
  if (out_ != nullptr) show(table(block, layout_, color_) + '\n');
}

void Report::keep(const std::vector<Record>& block) {
  records_.insert(records_.end(), block.begin(), block.end());
}

void Report::say(const std::string& text) { show(text + "\n\n"); }

}  // namespace pleat::bench
