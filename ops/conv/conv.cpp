#include "pleat/ops/conv/conv.h"

#include <algorithm>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/spatial/channel_affine.h"

namespace pleat::ops {
namespace {

const char* op_name(int spatial_dims) {
  return spatial_dims == 1 ? "conv1d" : spatial_dims == 2 ? "conv2d" : "conv3d";
}

int spatial_dims_of(const Shape& weight) {
  const auto dims = static_cast<int>(weight.size()) - 2;
  check<ShapeError>(dims >= 1 && dims <= 3,
                    "conv: the weight needs 3 to 5 dimensions [K, C / groups, kernel...], got {}", weight);
  return dims;
}

/// [N, C, spatial...] with three spatial dimensions, the missing ones of size 1 in front.
Tensor five_dims(const Tensor& t) {
  Shape shape = t.shape();
  Strides strides = t.strides();
  while (shape.size() < 5) {
    shape.insert(shape.begin() + 2, 1);
    strides.insert(strides.begin() + 2, strides[0]);
  }
  return t.as_strided(std::move(shape), std::move(strides), t.offset());
}

Shape shape5(int64_t a, int64_t b, const Spatial& sizes) { return {a, b, sizes[0], sizes[1], sizes[2]}; }

/// Elements that lie dense in a format, seen with other sizes.
Tensor with_sizes(const Tensor& t, const Shape& shape, MemoryFormat format) {
  return t.as_strided(shape, dense_strides(shape, format), t.offset());
}

/// The format of the result as the implementation writes it.
MemoryFormat written_format(const ConvProblem& problem, ConvLayout layout) {
  if (layout == ConvLayout::strided) return problem.result_format.value_or(problem.format);
  return layout == ConvLayout::nhwc ? MemoryFormat::channels_last : MemoryFormat::contiguous;
}

/// Whether elements of the same index lie in the same place.
bool lie_alike(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.strides() == b.strides();
}

}  // namespace

ConvProblem solved_problem(const ConvProblem& problem, const ConvImplementation& implementation) {
  ConvProblem solved = problem;
  if (!implementation.takes(problem.dtype)) solved.dtype = compute_dtype(problem.dtype);
  const ConvLayout layout = implementation.layout(problem);
  return layout == ConvLayout::strided ? solved : simplify(solved, written_format(problem, layout));
}

bool ConvCall::is_empty() const {
  // An empty batch still has a gradient of the weight, of zeros.
  return problem.batch == 0;
}

namespace {

/// A call as one implementation computes it.
class SolvedCall {
 public:
  SolvedCall(const ConvCall& call, const ConvImplementation& implementation)
      : call_(call),
        implementation_(implementation),
        layout_(implementation.layout(call.problem)),
        format_(written_format(call.problem, layout_)),
        dtype_(solved_problem(call.problem, implementation).dtype) {}

  /// The result in the caller's type and format.
  Tensor run() const {
    const ConvProblem& problem = call_.problem;
    Tensor result = make(result_shape());
    if (!call_.is_empty())
      run_batch(result);
    else if (call_.pass == ConvPass::backward_weight)
      fill(result, 0);
    return to_format(cast(result, problem.dtype), problem.result_format.value_or(format_));
  }

 private:
  Shape result_shape() const {
    switch (call_.pass) {
      case ConvPass::forward:
        return call_.problem.output_shape();
      case ConvPass::backward_input:
        return call_.problem.input_shape();
      case ConvPass::backward_weight:
        break;
    }
    return call_.problem.weight_shape();
  }
  Tensor make(const Shape& shape) const {
    return empty(shape, {.dtype = dtype_, .device = call_.problem.device, .format = format_});
  }

  /// Whether the result stays as the implementation writes it.
  bool is_final() const {
    return dtype_ == call_.problem.dtype && call_.problem.result_format.value_or(format_) == format_;
  }
  /// Whether sums of the result are wanted, which are made of a whole one.
  bool wants_sums() const { return is_final() && (call_.moments || call_.normalized_by != nullptr); }

  /// Bytes of x and dy that are converted.
  int64_t converted_bytes() const {
    int64_t bytes = 0;
    for (const Tensor* t : {&call_.x, &call_.dy})
      if (t->defined() && (t->dtype() != dtype_ || !t->is_contiguous(format_)))
        bytes += t->numel() * size_of(dtype_);
    return bytes;
  }

  /// Large operands are converted in parts, each of which is read again while it lies in a cache: out of
  /// memory that takes longer than many convolutions. Parts are the same for all numbers of threads.
  int64_t images_at_once() const {
    constexpr int64_t part_bytes = int64_t{4} << 20;
    const int64_t batch = call_.problem.batch;
    const bool adds_halves = call_.pass == ConvPass::backward_weight && is_half(dtype_);
    if (!call_.problem.device.is_cpu() || layout_ == ConvLayout::strided || wants_sums() || adds_halves)
      return batch;
    const int64_t bytes = converted_bytes();
    if (bytes < 2 * part_bytes) return batch;
    // What is done to the weights is done for each part.
    const int64_t weights = call_.problem.out_channels * call_.problem.depth() * size_of(dtype_);
    return std::clamp<int64_t>(batch * std::max(part_bytes, 8 * weights) / bytes, 1, batch);
  }

  void run_batch(Tensor& result) const {
    const ConvProblem& problem = call_.problem;
    const int64_t parts = ceil_div(problem.batch, images_at_once());
    const ConvProblem whole = solved_problem(problem, implementation_);
    const Tensor w = call_.w.defined() ? operand(call_.w, weight_shape(whole)) : Tensor();
    const Tensor bias =
        call_.bias.defined() ? to_format(cast(call_.bias, dtype_), MemoryFormat::contiguous) : Tensor();
    if (parts == 1) return run_part(whole, call_.x, call_.dy, w, bias, result);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = problem.batch * part / parts;
      const int64_t count = problem.batch * (part + 1) / parts - first;
      ConvProblem of_part = problem;
      of_part.batch = count;
      const ConvProblem solved = solved_problem(of_part, implementation_);
      const Tensor x = images(call_.x, first, count), dy = images(call_.dy, first, count);
      if (call_.pass != ConvPass::backward_weight) {
        Tensor result_part = images(result, first, count);
        run_part(solved, x, dy, w, bias, result_part);
      } else if (part == 0) {
        run_part(solved, x, dy, w, bias, result);
      } else {
        Tensor sum = make(result_shape());
        run_part(solved, x, dy, w, bias, sum);
        add_into(result, result, sum);
      }
    }
  }

  /// Some images of a batch.
  static Tensor images(const Tensor& batch, int64_t first, int64_t count) {
    if (!batch.defined()) return batch;
    Shape shape = batch.shape();
    shape[0] = count;
    return batch.as_strided(std::move(shape), batch.strides(), batch.offset() + first * batch.strides()[0]);
  }

  static Shape weight_shape(const ConvProblem& p) { return shape5(p.out_channels, p.group_in(), p.kernel); }

  /// A tensor of the caller's as the implementation takes it, `reduced` being its sizes there.
  Tensor operand(const Tensor& t, const Shape& reduced) const {
    const Tensor typed = cast(t, dtype_);
    if (layout_ == ConvLayout::strided) return five_dims(typed);
    return with_sizes(to_format(typed, format_), reduced, format_);
  }

  /// The call for the images of x or dy; w and bias are as the implementation takes them.
  void run_part(const ConvProblem& p, const Tensor& x, const Tensor& dy, const Tensor& w, const Tensor& bias,
                Tensor& result) const {
    const auto as_input = [&](const Tensor& t) {
      return operand(t, shape5(p.batch, p.in_channels, p.input));
    };
    const auto as_output = [&](const Tensor& t) {
      return operand(t, shape5(p.batch, p.out_channels, p.output));
    };
    switch (call_.pass) {
      case ConvPass::forward: {
        const Tensor own_x = as_input(x), y = as_output(result);
        const auto sums = std::make_shared<Moments>();
        if (call_.moments && is_final() && implementation_.forward_with_moments(p, own_x, w, bias, y, *sums))
          result.set_note<Moments>(sums);
        else
          implementation_.forward(p, own_x, w, bias, y);
        break;
      }
      case ConvPass::backward_input: {
        const Tensor own_dy = as_output(dy), dx = as_input(result);
        const auto sums = std::make_shared<GradientSums>();
        sums->of = call_.normalized_by;
        // A simplified problem may have columns of pixels for channels.
        if (call_.normalized_by != nullptr && is_final() && p.in_channels == call_.problem.in_channels &&
            lie_alike(call_.normalized_by->x(), result) &&
            implementation_.backward_input_with_sums(p, own_dy, w, dx, *sums))
          result.set_note<GradientSums>(sums);
        else
          implementation_.backward_input(p, own_dy, w, dx);
        break;
      }
      case ConvPass::backward_weight:
        implementation_.backward_weight(p, as_output(dy), as_input(x), operand(result, weight_shape(p)));
        break;
    }
  }

  const ConvCall& call_;
  const ConvImplementation& implementation_;
  ConvLayout layout_;
  MemoryFormat format_;
  DType dtype_;
};

}  // namespace

Tensor ConvCall::run(const ConvImplementation& implementation) const {
  const PrecisionScope precision(problem.precision);  // for the matrix products inside
  return SolvedCall(*this, implementation).run();
}

ConvCall forward_call(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options) {
  const int dims = spatial_dims_of(w.shape());
  const ConvOperand bias_operand =
      bias.defined() ? ConvOperand("bias", bias) : ConvOperand("bias", Shape(), x);
  const ConvProblem problem = make_conv_problem(op_name(dims), dims, {"input", x}, {"weight", w}, options,
                                                nullptr, bias.defined() ? &bias_operand : nullptr);
  return {op_name(dims), ConvPass::forward, problem, options.implementation, x, w, {}, bias, options.moments};
}

ConvCall backward_input_call(const Tensor& dy, const Tensor& w, const Shape& input_shape,
                             const ConvOptions& options) {
  const int dims = spatial_dims_of(w.shape());
  const ConvOperand output("dy", dy);
  const ConvProblem problem =
      make_conv_problem(op_name(dims), dims, {"input", input_shape, dy}, {"weight", w}, options, &output);
  return {op_name(dims),
          ConvPass::backward_input,
          problem,
          first_named(options.backward_input_implementation, options.implementation),
          {},
          w,
          dy,
          {}};
}

ConvCall backward_weight_call(const Tensor& dy, const Tensor& x, const Shape& weight_shape,
                              const ConvOptions& options) {
  const int dims = spatial_dims_of(weight_shape);
  const ConvOperand output("dy", dy);
  const ConvProblem problem =
      make_conv_problem(op_name(dims), dims, {"input", x}, {"weight", weight_shape, x}, options, &output);
  return {op_name(dims),
          ConvPass::backward_weight,
          problem,
          first_named(options.backward_weight_implementation, options.implementation),
          x,
          {},
          dy,
          {}};
}

namespace {

/// Runs the implementation that is chosen for the call, and records which it is.
Tensor run_chosen(const RecordOp& range, const ConvCall& call) {
  const std::shared_ptr<const ConvImplementation> implementation = choose(call);
  range.details([&] {
    return RangeDetails{.implementation = implementation->name(),
                        .flops = static_cast<double>(call.problem.flops())};
  });
  return call.run(*implementation);
}

}  // namespace

Tensor conv_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options) {
  const RecordOp range(op_name(spatial_dims_of(w.shape())), x, w, bias);
  const ConvCall call = forward_call(x, w, bias, options);
  return run_chosen(range, call);
}

Tensor conv_backward_input(const Tensor& dy, const Tensor& w, const Sizes& input_shape,
                           const ConvOptions& options,
                           const std::shared_ptr<const NormalizedBy>& normalized_by) {
  const RecordOp range(op_name(spatial_dims_of(w.shape())), "_backward_input", dy, w);
  ConvCall call = backward_input_call(dy, w, input_shape, options);
  call.normalized_by = normalized_by;
  return run_chosen(range, call);
}

Tensor conv_backward_weight(const Tensor& dy, const Tensor& x, const Sizes& weight_shape,
                            const ConvOptions& options) {
  const RecordOp range(op_name(spatial_dims_of(weight_shape)), "_backward_weight", dy, x);
  const ConvCall call = backward_weight_call(dy, x, weight_shape, options);
  return run_chosen(range, call);
}

Tensor conv_backward_bias(const Tensor& dy) {
  const RecordOp range("conv_backward_bias", dy);
  check<ShapeError>(dy.rank() >= 2, "conv_backward_bias: needs [N, K, ...], got {}", dy.describe());
  Dims dims{0};
  for (int64_t d = 2; d < dy.rank(); ++d) dims.push_back(d);
  return sum(dy, dims);
}

}  // namespace pleat::ops
