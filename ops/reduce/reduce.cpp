#include "pleat/ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "pleat/autograd/call.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/elementwise/widened.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/plan.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// Turns what belongs to the results of a reduction into what belongs to its inputs, without copying.
class Spread {
 public:
  Spread(const Tensor& x, const Dims& dims, const char* op)
      : shape_(x.shape()), kept_(x.shape()), reduced_(x.shape().size(), dims.empty()) {
    for (const int64_t dim : dims)
      if (!shape_.empty()) reduced_[static_cast<std::size_t>(normalize_dim(dim, x.rank(), op))] = true;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (!reduced_[d]) continue;
      kept_[d] = 1;
      count_ *= shape_[d];
    }
  }

  /// The result with its reduced dimensions as 1.
  Tensor keepdim(const Tensor& y) const { return reshape(y, kept_); }
  Tensor operator()(const Tensor& y) const { return expand(keepdim(y), shape_); }
  /// Elements of x that make one result.
  int64_t count() const { return count_; }
  /// y / count(), which a half type need not have.
  Tensor shared_out(const Tensor& y) const {
    return cast(widened(y) / static_cast<double>(count_), y.dtype());
  }

  /// x as a matrix with a row for each result, and back.
  Tensor to_rows(const Tensor& x) const {
    return reshape(permute(x, order()), {pleat::count(kept_), count_});
  }
  Tensor from_rows(const Tensor& rows) const {
    const std::vector<int64_t> forward = order();
    std::vector<int64_t> inverse(forward.size());
    Shape permuted;
    for (std::size_t i = 0; i < forward.size(); ++i) {
      permuted.push_back(shape_[static_cast<std::size_t>(forward[i])]);
      inverse[static_cast<std::size_t>(forward[i])] = static_cast<int64_t>(i);
    }
    return permute(reshape(rows, permuted), inverse);
  }

 private:
  /// The kept dimensions, then the reduced ones.
  std::vector<int64_t> order() const {
    std::vector<int64_t> result;
    for (const bool reduced : {false, true})
      for (std::size_t d = 0; d < shape_.size(); ++d)
        if (reduced_[d] == reduced) result.push_back(static_cast<int64_t>(d));
    return result;
  }

  Shape shape_;
  Shape kept_;
  std::vector<bool> reduced_;
  int64_t count_ = 1;
};

/// g -> factor g (x - mean) / (count - correction), the variance's derivative for a factor of 2.
class FromMean {
 public:
  FromMean(const Tensor& x, const Dims& dims, const VarOptions& options, const Tensor& mean)
      : spread_(x, dims, "var"),
        dims_(dims),
        degrees_(static_cast<double>(spread_.count()) - options.correction),
        x_(saved(x)),
        mean_(saved(mean)) {}

  Tensor operator()(const Tensor& g, double factor) const {
    if (!grad_enabled())
      return ops::moments_gradient(spread_.keepdim(g), *x_, spread_.keepdim(*mean_), factor, degrees_);
    // A graph of gradients must know that the mean depends on x.
    const Tensor x = widened(*x_);
    return spread_(widened(g) * factor / degrees_) * (x - mean(x, dims_, true));
  }

 private:
  Spread spread_;
  Dims dims_;
  double degrees_;
  Saved x_;
  Saved mean_;
};

/// Whether all of y are ordinary numbers: neither 0 nor NaN, and inside the range of the type with all its
/// digits. Asked on the CPU alone, as a GPU would be waited for.
bool are_normal(const Tensor& y) {
  if (y.device().is_cuda() || is_half(y.dtype())) return false;
  const auto check = [&]<class T>(Type<T>) {
    const std::vector<T> numbers = y.detach().to_vector<T>();
    return std::all_of(numbers.begin(), numbers.end(), [](T number) { return std::isnormal(number); });
  };
  return y.dtype() == float64 ? check(Type<double>{}) : check(Type<float>{});
}

Attributes traced_dims(const Dims& dims, Flag keepdim) {
  return {{"dims", dims.values()}, {"keepdim", keepdim}};
}
Attributes traced_var(const Dims& dims, const VarOptions& options) {
  Attributes attributes = traced_dims(dims.empty() ? options.dim : dims, Flag(options.keepdim));
  attributes.emplace_back("correction", options.correction);
  return attributes;
}

Tensor without_zeros(const Tensor& x) { return masked_fill(x, x == 0, 1); }

/// Of (sum of |x|^p)^(1/p) over dims.
Tensor norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& y, double p, const Spread& spread,
                     const Dims& dims) {
  if (p == 0) return zeros_like(x);
  if (p == 1) return sign(x) * spread(dy);
  if (std::isinf(p)) {
    const Tensor equal = ops::equal_elements(abs(x).detach(), spread.keepdim(y.detach()));
    return sign(x) * spread(spread.keepdim(dy) / sum(equal, dims, true)) * equal;
  }
  // Shares of the norm: powers of the elements may have no room.
  const Tensor share = x / spread(without_zeros(y));
  if (p == 2) return share * spread(dy);
  if (p == 3) return share * abs(share) * spread(dy);
  const Tensor
      size =  // infinity^(p - 1) is 0 for p < 1 and a norm of 0, 0^(p - 1) for p > 1 and one of infinity
      p > 1 ? masked_fill(abs(share), x == 0, 1) : without_zeros(abs(x)) / spread(y);
  return sign(x) * pow(size, p - 1) * spread(dy);
}

Tensor extreme(const char* op, const Tensor& x, const Dims& dims, bool keepdim, bool larger) {
  const Call call(op, {x}, [&] { return traced_dims(dims, Flag(keepdim)); });
  const Tensor y = ops::reduce_extreme(op, x, dims, keepdim, larger);
  return call.result(
      y, grad_of(x, [=, spread = Spread(x, dims, op), x = saved(x), y = saved(y)](const Tensor& dy) {
        const Tensor extremes = spread.keepdim((*y).detach());
        if constexpr (with_cuda)
          if (dims.size() == 1 && extremes.rank() > 0 && dy.device().is_cuda() && !grad_enabled())
            return ops::extreme_gradient_cuda(op, spread.keepdim(dy), *x, extremes, *dims.begin());
        const Tensor equal = ops::equal_elements(*x, extremes);
        return spread(spread.keepdim(dy) / sum(equal, dims, true)) * equal;
      }));
}

/// Zeros but for the values at the indices along `dim`; gathering from there is the adjoint.
Tensor placed(const Tensor& values, const Tensor& indices, int64_t dim, int64_t size, MemoryFormat format) {
  const Call call("place_at_indices", {values, indices});
  return call.result(ops::place_at_indices(values, indices, dim, size, format),
                     grad_of(values, [indices = saved(indices), dim](const Tensor& dy) {
                       const ops::IndicesAreChecked checked;
                       return gather(dy, dim, *indices);
                     }));
}

ValuesIndices with_indices(const char* op, const Tensor& x, int64_t dim, bool keepdim, bool larger) {
  const Call call(op, {x}, {{"dim", dim}, {"keepdim", Flag(keepdim)}});
  const ValuesIndices y = ops::reduce_extreme_with_indices(op, x, dim, keepdim, larger);
  const int64_t size = x.rank() == 0 ? 1 : x.size(dim);
  const Tensor values =
      record(op, y.values,
             {grad_of(x, [spread = Spread(x, dim, op), indices = saved(y.indices), dim, size,
                          format = x.memory_format()](const Tensor& dy) {
               return placed(spread.keepdim(dy), spread.keepdim(*indices), dim, size, format);
             })});
  call.gives(std::vector<Tensor>{values, y.indices});
  return {values, y.indices};
}

Tensor place(const char* op, const Tensor& x, std::optional<int64_t> dim, bool keepdim, bool larger) {
  const Call call(op, {x}, {{"all", Flag(!dim)}, {"dim", dim.value_or(0)}, {"keepdim", Flag(keepdim)}});
  if (dim) return call.gives(ops::reduce_extreme_with_indices(op, x, *dim, keepdim, larger).indices);
  ops::reduction::check_can_be_read(op, x);
  const Tensor rows = ops::to_format(x, MemoryFormat::contiguous);
  const Tensor line = rows.as_strided({rows.numel()}, {1}, rows.offset());
  const Tensor flat = ops::reduce_extreme_with_indices(op, line, 0, false, larger).indices;
  const Tensor place = keepdim ? reshape(flat, Shape(x.shape().size(), 1)) : flat;
  place.mutable_impl().is_place_among_all = true;
  return call.gives(place);
}

Tensor truth(const char* op, const Tensor& x, const Dims& dims, bool keepdim, bool is_any) {
  const Call call(op, {x}, [&] { return traced_dims(dims, Flag(keepdim)); });
  return call.gives(ops::reduce_truth(op, x, dims, keepdim, is_any));
}

}  // namespace

Tensor sum(const Tensor& input, const Dims& dims, Flag keepdim) {
  const Call call(
      "sum", {input}, [&] { return traced_dims(dims, keepdim); }, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  return call.result(ops::reduce_sum(x, dims, keepdim),
                     grad_of(x, [spread = Spread(x, dims, "sum")](const Tensor& dy) { return spread(dy); }));
}

Tensor sum_to(const Tensor& x, const Sizes& shape) {
  if (x.shape() == shape) return x;
  check<ShapeError>(x.shape().size() >= shape.size() && broadcast(shape, x.shape(), "sum_to") == x.shape(),
                    "sum_to: {} cannot come from {} by broadcasting", x.shape(), shape);
  const std::size_t added = x.shape().size() - shape.size();
  Dims dims;
  for (std::size_t d = 0; d < x.shape().size(); ++d)
    if (d < added || (shape[d - added] == 1 && x.shape()[d] != 1)) dims.push_back(static_cast<int64_t>(d));
  return reshape(sum(x, dims, true), shape);
}

Tensor mean(const Tensor& input, const Dims& dims, Flag keepdim) {
  const Call call(
      "mean", {input}, [&] { return traced_dims(dims, keepdim); }, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  return call.result(ops::reduce_mean(x, dims, keepdim),
                     grad_of(x, [spread = Spread(x, dims, "mean")](const Tensor& dy) {
                       return spread(spread.shared_out(dy));
                     }));
}

Tensor prod(const Tensor& input, const Dims& dims, Flag keepdim) {
  const Call call(
      "prod", {input}, [&] { return traced_dims(dims, keepdim); }, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  const Tensor y = ops::reduce_prod(x, dims, keepdim);
  return call.result(
      y, grad_of(x, [spread = Spread(x, dims, "prod"), x = saved(x), y = saved(y)](const Tensor& dy) {
        const Tensor wide = widened(*x);
        // The product of all others is a quotient where nothing has left the range.
        const Tensor scaled = widened(dy) * *y;
        if (are_normal(*y) && are_normal(scaled)) return spread(scaled) / wide;
        // Else those before times those after: zeros do no harm.
        const Tensor rows = spread.to_rows(wide);
        const Tensor before = shifted(cumprod(rows, 1), 1, 1, 1);
        const Tensor after = shifted(cumprod(rows, 1, true), 1, -1, 1);
        return spread(dy) * spread.from_rows(before * after);
      }));
}

Tensor var(const Tensor& input, const Dims& dims, VarOptions options) {
  const Call call(
      "var", {input}, [&] { return traced_var(dims, options); }, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  const VarMean y = ops::reduce_moments("var", x, dims, options, false);
  return call.result(y.var, grad_of(x, [from_mean = FromMean(x, dims, options, y.mean)](const Tensor& dy) {
                       return from_mean(dy, 2);
                     }));
}

Tensor stddev(const Tensor& input, const Dims& dims, VarOptions options) {
  const Call call(
      "stddev", {input}, [&] { return traced_var(dims, options); }, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  const auto [y, mean] = ops::reduce_moments("stddev", x, dims, options, true);
  return call.result(
      y, grad_of(x, [from_mean = FromMean(x, dims, options, mean), y = saved(y)](const Tensor& dy) {
        return from_mean(widened(dy) / without_zeros(*y), 1);
      }));
}

VarMean var_mean(const Tensor& input, const Dims& dims, VarOptions options) {
  const Call call(
      "var_mean", {input}, [&] { return traced_var(dims, options); }, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  const VarMean y = ops::reduce_moments("var_mean", x, dims, options, false);
  const auto backward = [spread = Spread(x, dims, "var_mean"),
                         from_mean = FromMean(x, dims, options, y.mean)](const Grads& dys,
                                                                         const Needs&) -> Grads {
    return {from_mean(widened(dys[0]), 2) + spread(spread.shared_out(dys[1]))};
  };
  const std::vector<Tensor> recorded = call.results(std::vector<Tensor>{y.var, y.mean}, {{{x}, backward}});
  return {recorded[0], recorded[1]};
}

Tensor norm(const Tensor& input, const Dims& dims, NormOptions options) {
  const Call call(
      "norm", {input},
      [&] {
        Attributes attributes = traced_dims(dims.empty() ? options.dim : dims, Flag(options.keepdim));
        attributes.emplace_back("p", options.p);
        return attributes;
      },
      Autocasts::to_float32);
  const Tensor& x = call.input(0);
  const Tensor y = ops::reduce_norm(x, dims, options);
  return call.result(y, grad_of(x,
                                [spread = Spread(x, dims, "norm"), p = options.p, dims, x = saved(x),
                                 y = saved(y)](const Tensor& dy) -> Tensor {
                                  return norm_gradient(widened(dy), widened(*x), widened(*y), p, spread,
                                                       dims);
                                }));
}

Tensor logsumexp(const Tensor& input, const Dims& dims, Flag keepdim) {
  const Call call(
      "logsumexp", {input}, [&] { return traced_dims(dims, keepdim); }, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  const Tensor y = ops::reduce_logsumexp(x, dims, keepdim);
  return call.result(
      y, grad_of(x, [spread = Spread(x, dims, "logsumexp"), x = saved(x), y = saved(y)](const Tensor& dy) {
        // Of -infinity alone y is -infinity, and the difference would be NaN.
        const Tensor finite = masked_fill(*y, *y == -std::numeric_limits<double>::infinity(), 0);
        return spread(dy) * exp(widened(*x) - spread(finite));
      }));
}

Tensor count_nonzero(const Tensor& x, const Dims& dims, Flag keepdim) {
  const RecordOp range("count_nonzero", x);
  for (const int64_t dim : dims) (void)normalize_dim(dim, x.rank(), "count_nonzero");
  return sum(x.dtype() == boolean ? x : x != 0, dims, keepdim);
}

Tensor any(const Tensor& x, const Dims& dims, Flag keepdim) { return truth("any", x, dims, keepdim, true); }
Tensor all(const Tensor& x, const Dims& dims, Flag keepdim) { return truth("all", x, dims, keepdim, false); }

Tensor max(const Tensor& x, const Dims& dims, Flag keepdim) { return extreme("max", x, dims, keepdim, true); }
Tensor min(const Tensor& x, const Dims& dims, Flag keepdim) {
  return extreme("min", x, dims, keepdim, false);
}

ValuesIndices max_with_indices(const Tensor& x, Integer dim, Flag keepdim) {
  return with_indices("max_with_indices", x, dim, keepdim, true);
}
ValuesIndices min_with_indices(const Tensor& x, Integer dim, Flag keepdim) {
  return with_indices("min_with_indices", x, dim, keepdim, false);
}

Tensor argmax(const Tensor& x, std::optional<Integer> dim, Flag keepdim) {
  return place("argmax", x, dim, keepdim, true);
}
Tensor argmin(const Tensor& x, std::optional<Integer> dim, Flag keepdim) {
  return place("argmin", x, dim, keepdim, false);
}

}  // namespace pleat
