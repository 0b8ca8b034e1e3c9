#pragma once

#include <optional>

#include "pleat/core/base/required.h"
#include "pleat/nn/layer.h"

namespace pleat::nn {

struct EmbeddingModuleOptions {
  Required<int64_t> num_embeddings;
  Required<int64_t> embedding_dim;
  std::optional<int64_t> padding_idx =
      {};  ///< a row that starts as 0 and gets no gradient; may count from the end
};

/// Rows of weight [num_embeddings, embedding_dim] for integer indices of any shape: [...] -> [...,
/// embedding_dim]. The weight starts standard normal. Throws ValueError for invalid options;
/// forward throws IndexError for an index outside of the weight.
class Embedding : public Layer<"Embedding"> {
 public:
  explicit Embedding(EmbeddingModuleOptions options);
  Tensor forward(const Tensor& index) override;
  void members(Members& m) override { m("weight", weight); }
  std::string options_text() const override;

  Tensor weight;
  std::optional<int64_t> padding_idx;
};

}  // namespace pleat::nn
