#include "pleat/ops/matmul/frozen_linear.h"

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/matmul/gemm_panels.h"

namespace pleat::ops {

class FrozenLinear::Packed {
 public:
  virtual ~Packed() = default;
  virtual Tensor run(const Tensor& x, const ResultFinish& finish) const = 0;
};

template <class T>
class FrozenLinear::PackedAs : public Packed {
 public:
  PackedAs(const Tensor& weight, const Tensor& bias, SharedBlocks& shared)
      : dtype_(weight.dtype()),
        bias_(operand(bias)),
        product_(product_of(weight)),
        panels_(product_, shared, [&](const ColumnPanels<T>& panels) {
          const Tensor lines = operand(weight);
          Gemm<T> product = product_;
          product.b = lines.data<T>();
          panels.pack(product, 0, panels.count());
        }) {
    if (bias_.defined()) product_.start = bias_.data<T>();
  }

  Tensor run(const Tensor& given, const ResultFinish& finish) const override {
    const Tensor x = operand(given);
    Shape shape = x.shape();
    check<ShapeError>(!shape.empty() && shape.back() == product_.k, "linear: needs [..., {}], got {}",
                      product_.k, x);
    shape.back() = product_.n;
    const Tensor y = empty(shape, {.dtype = x.dtype(), .device = x.device()});
    ResultFinish own = finish;
    own.addend = operand(finish.addend);
    const FinishRows rows(own, y.data<T>());
    Gemm<T> product = product_;
    product.m = y.numel() / product.n;
    product.a = x.data<T>();
    product.c = y.data<T>();
    if (rows.finish) product.finish = &rows;
    gemm(product, panels_);
    return cast(y, dtype_);
  }
  const ColumnPanels<T>& panels() const { return panels_; }

 private:
  struct FinishRows : Finish<T> {
    FinishRows(const ResultFinish& of, T* y) : finish(of), first(y) {}
    void run(T* values, int64_t n) const override { finish.run(values, values - first, n); }

    RowFinish<T> finish;
    T* first;
  };

  static Tensor operand(const Tensor& t) {
    return t.defined() ? to_format(cast(t, dtype_of<T>()), MemoryFormat::contiguous) : t;
  }
  static Gemm<T> product_of(const Tensor& weight) {
    const int64_t out = weight.size(0), in = weight.size(1);
    return {.m = 1, .n = out, .k = in, .lda = in, .ldb = in, .transpose_b = true, .ldc = out};
  }

  DType dtype_;  ///< of operands and results
  Tensor bias_;
  Gemm<T> product_;
  ColumnPanels<T> panels_;
};

FrozenLinear::FrozenLinear(const Tensor& weight, const Tensor& bias, SharedBlocks& shared) {
  check<ShapeError>(weight.rank() == 2 && (!bias.defined() || bias.shape() == Shape{weight.size(0)}),
                    "linear: needs a weight [out, in] and a bias [out], got {} and {}", weight, bias);
  if (weight.dtype() == float64)
    packed_ = std::make_unique<PackedAs<double>>(weight, bias, shared);
  else if (weight.dtype() == bfloat16 && multiplies_bfloat16())
    packed_ = std::make_unique<PackedAs<BFloat16>>(weight, bias, shared);
  else
    packed_ = std::make_unique<PackedAs<float>>(weight, bias, shared);
}
FrozenLinear::~FrozenLinear() = default;
FrozenLinear::FrozenLinear(FrozenLinear&&) noexcept = default;

Tensor FrozenLinear::run(const Tensor& x, const ResultFinish& finish) const {
  const RecordOp range("linear", x);
  return packed_->run(x, finish);
}

template <class T>
const ColumnPanels<T>& FrozenLinear::panels() const {
  return static_cast<const PackedAs<T>&>(*packed_).panels();
}
template const ColumnPanels<float>& FrozenLinear::panels() const;
template const ColumnPanels<double>& FrozenLinear::panels() const;
template const ColumnPanels<BFloat16>& FrozenLinear::panels() const;

}  // namespace pleat::ops
