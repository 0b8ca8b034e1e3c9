#include "pleat/nn/embedding.h"

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/init.h"
#include "pleat/nn/options_text.h"
#include "pleat/ops/index/index.h"

namespace pleat::nn {

Embedding::Embedding(EmbeddingModuleOptions o) : padding_idx(o.padding_idx) {
  const int64_t rows = o.num_embeddings;
  const int64_t width = o.embedding_dim;
  check<ValueError>(rows >= 1 && width >= 1,
                    "Embedding: num_embeddings and embedding_dim must be at least 1, got {} and {}", rows,
                    width);
  check<ValueError>(!padding_idx || (*padding_idx >= -rows && *padding_idx < rows),
                    "Embedding: padding_idx must be one of {} rows, got {}", rows, padding_idx.value_or(0));
  weight = parameter(empty({rows, width}));
  init::normal_(weight);
  if (!padding_idx) return;
  const int64_t row = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  ops::fill(weight.as_strided({width}, {1}, row * width), 0);
}

Tensor Embedding::forward(const Tensor& index) {
  return embedding(index, weight, {.padding_idx = padding_idx});
}

std::string Embedding::options_text() const {
  return OptionsText()(weight.size(0))(weight.size(1))("padding_idx", padding_idx, std::optional<int64_t>());
}

}  // namespace pleat::nn
