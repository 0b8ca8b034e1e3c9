#pragma once

#include <functional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "pleat/tests/op_cases/inputs.h"

/// The survey of ops, `compare_torch.py --only ops`: one table of calls as Pleat and as PyTorch write them.

namespace pleat::bench {

using Work = std::function<void()>;  ///< null: there is no such pass

/// A call. Its passes are, by their names in results: "forward" (nothing recorded), "backward" (alone, to all
/// operands that are differentiated), "training" (recorded forward and backward).
struct OpRow {
  const char* family;
  const char* name;
  /// Of x, y, z, w, with spaces between; each is sizes with commas between, perhaps after a kind and a colon
  /// (op_survey.cpp explains kinds and letters). With letters among the sizes there are three problems.
  const char* operands;
  const char* torch;  ///< a Python expression of x, y, z, w; torch, F, nn and what torch_server.py defines
  std::vector<const char*> passes;
  test::Outputs (*call)(const test::Tensors& operands) = nullptr;
  Work (*prepared)() =
      nullptr;  ///< in place of `call`, for what has state; `torch` then gives a function, too
};

/// The table, a file a group of families: op_rows_*.cpp.
std::vector<OpRow> pointwise_rows();
std::vector<OpRow> reduction_rows();
std::vector<OpRow> movement_rows();

/// A problem for each size of each row: {"group", "name", "row", "torch", "passes", "operands": [{"kind",
/// "shape"} ...]}.
nlohmann::json op_problems();
/// What `pass` of a row does with operands as op_problems describes them, on the default device, those of
/// rank 4 and 5 in `format`. Throws ValueError for a row that there is not; null for a pass that it does not
/// have.
Work prepare_op(const nlohmann::json& request);

}  // namespace pleat::bench
