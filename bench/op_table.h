#pragma once

#include "pleat/bench/op_survey.h"
#include "pleat/pleat.h"

namespace pleat::bench {

/// Of what gives no tensor.
template <class T>
test::Outputs done(const T&) {
  return test::Tensors{};
}

inline std::vector<OpRow> joined(const std::vector<std::vector<OpRow>>& families) {
  std::vector<OpRow> rows;
  for (const auto& family : families) rows.insert(rows.end(), family.begin(), family.end());
  return rows;
}

}  // namespace pleat::bench

/// For files of rows: a call of the operands x, y, z, w, with its passes. After a name come the operands,
/// Pleat's call, and PyTorch's as text.

#define PLEAT_OP_CALL(...)                                                               \
  [](const pleat::test::Tensors& in) -> pleat::test::Outputs {                           \
    [[maybe_unused]] const pleat::Tensor &x = in[0], &y = in[1], &z = in[2], &w = in[3]; \
    return __VA_ARGS__;                                                                  \
  }
/// Forward and backward, forward alone, recorded forward and backward in one run.
#define BOTH(name, operands, call, torch) \
  { family, name, operands, torch, {"forward", "backward"}, PLEAT_OP_CALL(call) }
#define FORWARD(name, operands, call, torch) \
  { family, name, operands, torch, {"forward"}, PLEAT_OP_CALL(call) }
#define TRAINING(name, operands, call, torch) \
  { family, name, operands, torch, {"forward", "training"}, PLEAT_OP_CALL(call) }
/// What has state: a function that makes what is run.
#define STATEFUL(name, make, torch)                                     \
  {                                                                     \
    family, name, "1", torch, {"forward"}, nullptr, [] { return make; } \
  }
