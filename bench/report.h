#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "pleat/bench/table.h"

namespace pleat::bench {

/// Writes at once: a run over many problems takes minutes. Throws FileError when `out` takes nothing.
void put(std::ostream& out, const std::string& text);

/// Takes records as they are found, shows them at once, and keeps them for the files.
class Report {
 public:
  /// `out` may be null: nothing is shown. `opening` is shown before whatever comes first.
  explicit Report(std::ostream* out = nullptr, bool color = false, std::string opening = {})
      : out_(out), color_(color), opening_(std::move(opening)) {}

  /// How records are shown from now on. To be called before anything is measured: that nothing can be shown
  /// is found out here.
  void set_layout(Layout layout);
  /// A block of records, shown as one table.
  void add(const std::vector<Record>& block);
  /// A block of records that were shown in another way.
  void keep(const std::vector<Record>& block);
  /// A paragraph beside the tables: a conclusion, a warning.
  void say(const std::string& text);

  const std::vector<Record>& records() const { return records_; }
  bool color() const { return color_; }

 private:
  void show(const std::string& text);

  std::ostream* out_;
  bool color_;
  std::string opening_;
  Layout layout_;
  std::vector<Record> records_;
};

}  // namespace pleat::bench
