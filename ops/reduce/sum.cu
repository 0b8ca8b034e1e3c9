#include "pleat/ops/reduce/fold.h"
#include "pleat/ops/reduce/grid_reduce_instances.h"

namespace pleat::ops::reduction {

template struct GridReductions<Quotient<float>, Fold<SumStep<float>>>;
template struct GridReductions<Quotient<double>, Fold<SumStep<double>>>;
template struct GridReductions<AsIs<float>, Fold<ProductStep<float>>>;
template struct GridReductions<AsIs<double>, Fold<ProductStep<double>>>;
template struct GridReductions<AsIs<int64_t>, Fold<SumStep<int64_t>>, Fold<ProductStep<int64_t>>>;

}  // namespace pleat::ops::reduction
