#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "pleat/op_cases/survey.h"

/// The survey of ops, `pleat-bench ops` and `compare_torch.py --only ops`: the calls of op_cases/survey.h
/// with operands of three sizes.

namespace pleat::bench {

using test::Work;

/// A call of Pleat as Python writes it: braces are tuples or, around members, keyword arguments.
std::string python_of(const std::string& call);

/// A problem for each size of each row: {"group", "name", "row", "size" ("small", "middle", "large"; "": it
/// has one), "torch", "stateful", "passes", "operands": [{"kind", "shape"} ...]}. `sizes` go for letters.
nlohmann::json op_problems(const std::map<std::string, int64_t>& sizes = {});

/// What `pass` of a row does with operands as op_problems describes them, on the default device, those of
/// rank 4 and 5 in `format`.
struct PreparedOp {
  Work work = nullptr;
  double bytes = 0;  ///< of operands, results and gradients, each once; 0: not known
};
/// Throws ValueError for a row that there is not; null for a pass that it does not have.
PreparedOp prepare_op(const nlohmann::json& request);

}  // namespace pleat::bench
