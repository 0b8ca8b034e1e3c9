// Private header: not installed.
#pragma once

#include <memory>

#include "pleat/core/tensor/shared_blocks.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/matmul/result_finish.h"

namespace pleat::ops {

template <class T>
class ColumnPanels;

/// linear with a weight [out, in] that no longer changes, of a floating type on the CPU: packed once, to be
/// run many times, off the tape, by several threads at once. Half types that the processor does not multiply
/// are packed as float32.
class FrozenLinear {
 public:
  /// The bias [out] may be undefined. The panels are of `shared`.
  FrozenLinear(const Tensor& weight, const Tensor& bias, SharedBlocks& shared);
  ~FrozenLinear();
  FrozenLinear(FrozenLinear&&) noexcept;

  /// f(x weight^T + bias + addend) of x [..., in] of the same type, a new tensor.
  Tensor run(const Tensor& x, const ResultFinish& finish) const;

  /// The weight, in panels; T is the type in which it is packed.
  template <class T>
  const ColumnPanels<T>& panels() const;

 private:
  class Packed;
  template <class T>
  class PackedAs;
  std::unique_ptr<const Packed> packed_;
};

}  // namespace pleat::ops
