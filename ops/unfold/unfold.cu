#include "pleat/core/dispatch_size.h"
#include "pleat/core/grid.h"
#include "pleat/ops/elementwise/grid_map.h"
#include "pleat/ops/unfold/unfold_grid.h"
#include "pleat/ops/unfold/window_functors.h"

namespace pleat::ops {

void unfold_on_grid(const ConvProblem& problem, const Tensor& x, const Tensor& columns) {
  dispatch_size(x.dtype(), [&]<class T>(Type<T>) {
    grid_for("unfold", x.device(), columns.numel(), UnfoldElement<T>(problem, x, columns));
  });
}

void fold_on_grid(const ConvProblem& problem, const Tensor& columns, const Tensor& images) {
  Floating::dispatch(columns.dtype(), [&]<class T>(Type<T>) {
    grid_for("fold", images.device(), images.numel(), FoldElement<T>(problem, columns, images));
  });
}

}  // namespace pleat::ops
