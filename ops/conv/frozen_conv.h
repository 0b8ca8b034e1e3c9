// Private header: not installed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pleat/core/tensor/shared_blocks.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/matmul/result_finish.h"

namespace pleat::ops {

/// A convolution, or a transposed one, whose weights no longer change, of inputs of one shape: chosen and
/// laid out once, to be run many times, off the tape, by several threads at once.
class FrozenConv {
 public:
  struct Choice {
    std::string implementation;  ///< with its plan; empty: the one that says that it costs least
    bool alone = false;          ///< in the calling thread: there is too little to share
  };

  /// Of a forward_call or transposed_call, of whose input the elements are not read. Without a choice all
  /// implementations that could be the fastest are timed on noise. Weights are of `shared`.
  FrozenConv(ConvCall call, const std::optional<Choice>& choice, SharedBlocks& shared);

  /// f(conv(x) + addend), a new tensor. The addend lies as the result does, or is converted.
  Tensor run(const Tensor& x, const ResultFinish& finish) const;

  std::string_view implementation() const { return way_->implementation->name(); }
  const Choice& choice() const { return way_->choice; }
  double flops() const { return static_cast<double>(problem_.flops()); }

 private:
  /// An implementation with the weights as it takes them.
  struct Way {
    Way(const ConvCall& call, const Choice& chosen, SharedBlocks& shared);
    Tensor run(const Tensor& x, const ResultFinish& finish, const ConvProblem& problem) const;

    ConvPass pass;
    std::shared_ptr<const ConvImplementation> implementation;
    ConvOperands as;
    Tensor weight, bias;  ///< a bias [K, 1, ...] where a transposed convolution is not prepared
    std::shared_ptr<const PreparedConv> prepared;  ///< null: there is nothing to prepare
    Choice choice;
  };

  const char* op_ = nullptr;
  ConvProblem problem_;
  std::shared_ptr<const Way> way_;
};

}  // namespace pleat::ops
