#pragma once

#include <cstdlib>
#include <deque>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "pleat/tests/cuda_double/finding.h"

namespace cuda_double::ptx {

/// A mistake that PLEAT_PTX_MUTATION="kernel;part;n;from;to" makes: in the n-th statement that has `part`, of
/// kernels whose names have `kernel`, `from` becomes `to`; without `from` the whole statement does.
class Mutation {
 public:
  explicit Mutation(const std::string& symbol) {
    const char* const given = std::getenv("PLEAT_PTX_MUTATION");
    if (given == nullptr) return;
    std::istringstream fields(given);
    std::string kernel, number;
    for (std::string* const field : {&kernel, &part_, &number, &from_, &to_})
      std::getline(fields, *field, ';');
    if (symbol.find(kernel) != std::string::npos) left_ = std::stoi(number);
  }
  /// The statement as it is then; it stays where it is.
  std::string_view of(std::string_view statement) {
    if (left_ == 0 || statement.find(part_) == std::string_view::npos || --left_ > 0) return statement;
    std::string changed(from_.empty() ? to_ : statement);
    if (const std::size_t at = changed.find(from_); at == std::string::npos)
      finding("PLEAT_PTX_MUTATION: no " + from_ + " in " + changed);
    else if (!from_.empty())
      changed.replace(at, from_.size(), to_);
    static auto* const all = new std::deque<std::string>;
    return all->emplace_back(std::move(changed));
  }

 private:
  std::string part_, from_, to_;
  int left_ = 0;
};

}  // namespace cuda_double::ptx
