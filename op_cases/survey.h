#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pleat/op_cases/inputs.h"

/// The calls that pleat-bench and compare_torch.py time, as Pleat and as PyTorch write them.

namespace pleat::test {

using Work = std::function<void()>;  ///< null: there is no such pass

/// By their names in results: "forward" (nothing recorded), "backward" (alone, to all operands that are
/// differentiated), "training" (recorded forward and backward).
enum class Passes : unsigned char { forward, both, training };

struct OpRow {
  /// "reduce/sum of rows: R,L; sum, int64: int:R,L": a family, and problems with a name and the operands x,
  /// y, z, w of each. These are sizes with commas between, perhaps after a kind and a colon (op_survey.cpp
  /// explains kinds and letters). With letters among the sizes there are three of a problem.
  std::string problems;
  std::string torch;  ///< a Python expression of x, y, z, w in the names of torch and F; "": there is none
  Passes passes = Passes::both;
  Function call = nullptr;
  /// In place of `call`, for what has state; `torch` then gives a function, too.
  Work (*prepared)() = nullptr;
};

/// The pointwise functions of the table of op cases that have no options, and the rows of survey_rows.cpp.
const std::vector<OpRow>& survey_rows();

}  // namespace pleat::test
