#include "pleat/ops/conv/conv_kernels.h"

#include <array>
#include <optional>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/shared_blocks.h"
#include "pleat/core/tensor/storage.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/fusion.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/reduce/kernels.h"

/// Convolutions as functions: each checks its call, has an implementation chosen and gives it operands in the
/// type and layout that it takes. The result is converted to what the caller asked for.

namespace pleat::ops {
namespace {

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

const char* conv_name(const Shape& weight) {
  constexpr std::array names{"conv1d", "conv2d", "conv3d"};
  return names[static_cast<std::size_t>(spatial_dims_of(weight)) - 1];
}

ConvProblem solved_problem(const ConvProblem& problem, const ConvImplementation& implementation) {
  ConvProblem solved = problem;
  if (!implementation.takes(problem.dtype)) solved.dtype = compute_dtype(problem.dtype);
  const ConvLayout layout = implementation.layout(problem);
  return layout == ConvLayout::strided ? solved : simplify(solved, written_format(problem, layout));
}

ConvOperands::ConvOperands(const ConvProblem& given, const ConvImplementation& implementation)
    : problem(solved_problem(given, implementation)),
      layout(implementation.layout(given)),
      format(written_format(given, layout)) {}
Tensor ConvOperands::laid_out(const Tensor& t) const { return to_format(cast(t, problem.dtype), format); }
Tensor ConvOperands::operand(const Tensor& t, const Shape& reduced) const {
  if (layout == ConvLayout::strided) return five_dims(cast(t, problem.dtype));
  return with_sizes(laid_out(t), reduced, format);
}
Tensor ConvOperands::input(const Tensor& t) const {
  return operand(t, shape5(problem.batch, problem.in_channels, problem.input));
}
Tensor ConvOperands::weight(const Tensor& t) const {
  return operand(t, shape5(problem.out_channels, problem.group_in(), problem.kernel));
}
Tensor ConvOperands::weight(const Tensor& t, SharedBlocks& shared) const {
  if (layout == ConvLayout::strided || !t.device().is_cpu()) return shared.of(weight(t));
  const Shape shape = shape5(problem.out_channels, problem.group_in(), problem.kernel);
  const int64_t bytes = count(shape) * size_of(problem.dtype);
  const auto block = shared.prepared(bytes, [&] {
    const Tensor laid_out = weight(t);
    return std::shared_ptr<std::byte>(laid_out.impl().storage->bytes, laid_out.raw());
  });
  return make_tensor(std::make_shared<Storage>(block, bytes, t.device()), shape, dense_strides(shape, format),
                     0, problem.dtype);
}
Tensor ConvOperands::output(const Tensor& t) const {
  return operand(t, shape5(problem.batch, problem.out_channels, problem.output));
}
Tensor ConvOperands::bias(const Tensor& t) const {
  return t.defined() ? to_format(cast(t, problem.dtype), MemoryFormat::contiguous) : Tensor();
}
Tensor ConvOperands::make(const Shape& shape) const {
  return empty(shape, {.dtype = problem.dtype, .device = problem.device, .format = format});
}

bool ConvCall::is_empty() const {
  // An empty batch still has a gradient of the weight, of zeros.
  return problem.batch == 0;
}

namespace {
/// What a thread chose last among problems of the same hash: costs are estimated once for each problem.
struct Choice {
  ConvProblem problem;
  ConvPass pass = ConvPass::forward;
  std::shared_ptr<const ConvImplementation> chosen;
};
}  // namespace

std::shared_ptr<const ConvImplementation> ConvCall::implementation(const std::string& name) const {
  // On a GPU the choice depends on the policy, too.
  if (!name.empty() || problem.device.is_cuda())
    return all_conv_implementations().get(op, problem, pass, name);
  constinit thread_local ThreadObject<std::array<Choice, 64>> choices;
  Choice& last = (*choices)[(problem.hash() + static_cast<std::size_t>(pass)) % 64];
  if (!last.chosen || last.pass != pass || !(last.problem == problem))
    last = {problem, pass, all_conv_implementations().get(op, problem, pass, name)};
  return last.chosen;
}

Tensor ConvCall::run(const ConvImplementation& implementation) const {
  const PrecisionScope precision(problem.precision);  // for the matrix products inside
  const ConvOperands as(problem, implementation);
  const ConvProblem& solved = as.problem;
  const MemoryFormat format = as.format;
  // Whether the result stays as the implementation writes it.
  const bool is_final = solved.dtype == problem.dtype && problem.result_format.value_or(format) == format;
  // A simplified problem may have columns of pixels for channels.
  const bool keeps_channels = solved.in_channels == problem.in_channels;
  Tensor result;
  switch (pass) {
    case ConvPass::forward: {
      result = as.make(problem.output_shape());
      if (is_empty()) break;
      const Tensor own_w = as.weight(w), y = as.output(result), own_bias = as.bias(bias);
      const auto fused = [&](const Tensor& from) {
        return implementation.fused_forward(solved, as.input(from), own_w, own_bias, y, *fusion);
      };
      if (fusion != nullptr) fusion->wants_moments &= is_final;
      if (fusion != nullptr && fusion->by != nullptr) {
        if (keeps_channels && fused(x)) break;
        fusion->input = normalized(*std::exchange(fusion->by, nullptr), x);
      }
      const Tensor& input = fusion != nullptr && fusion->input.defined() ? fusion->input : x;
      if (fusion == nullptr || !fusion->wants_moments || !fused(input))
        implementation.forward(solved, as.input(input), own_w, own_bias, y);
      break;
    }
    case ConvPass::backward_input: {
      result = as.make(problem.input_shape());
      if (is_empty()) break;
      const Tensor own_dy = as.output(dy), own_w = as.weight(w), dx = as.input(result);
      if (fusion == nullptr || !is_final || !keeps_channels || !lie_alike(fusion->x, result) ||
          !implementation.fused_backward_input(solved, own_dy, own_w, dx, *fusion))
        implementation.backward_input(solved, own_dy, own_w, dx);
      break;
    }
    case ConvPass::backward_weight:
      result = as.make(problem.weight_shape());
      if (is_empty()) {
        fill(result, 0);
        break;
      }
      const Tensor own_dy = as.output(dy), dw = as.weight(result);
      if (fusion == nullptr)
        implementation.backward_weight(solved, own_dy, as.input(x), dw);
      else if (!keeps_channels ||
               !implementation.fused_backward_weight(solved, own_dy, as.input(x), dw, *fusion))
        implementation.backward_weight(solved, own_dy, as.input(normalized(*fusion->by, x)), dw);
      break;
  }
  return to_format(cast(result, problem.dtype), problem.result_format.value_or(format));
}

namespace {

/// The implementation that options or a policy name for a pass alone, else for all.
template <class Options>
const std::string& named(const Options& options, ConvPass pass) {
  const std::string& own = pass == ConvPass::backward_input    ? options.backward_input_implementation
                           : pass == ConvPass::backward_weight ? options.backward_weight_implementation
                                                               : options.implementation;
  return own.empty() ? options.implementation : own;
}

/// The call of a pass but for its operands.
ConvCall checked_call(ConvPass pass, const ConvOperand& input, const ConvOperand& weight,
                      const ConvOptions& options, const ConvOperand* output,
                      const ConvOperand* bias = nullptr) {
  const int dims = spatial_dims_of(weight.shape);
  const char* op = conv_name(weight.shape);
  const std::string& name = named(options, pass);
  return {.op = op,
          .pass = pass,
          .problem = make_conv_problem(op, dims, input, weight, options, output, bias),
          .requested = name.empty() ? named(ConvPolicy::current(), pass) : name};
}

}  // namespace

ConvCall forward_call(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options) {
  std::optional<ConvOperand> added;
  if (bias.defined()) added.emplace("bias", bias);
  ConvCall call = checked_call(ConvPass::forward, {"input", x}, {"weight", w}, options, nullptr,
                               added ? &*added : nullptr);
  call.x = x;
  call.w = w;
  call.bias = bias;
  return call;
}

ConvCall backward_input_call(const Tensor& dy, const Tensor& w, const Shape& input_shape,
                             const ConvOptions& options) {
  const ConvOperand output("dy", dy);
  ConvCall call =
      checked_call(ConvPass::backward_input, {"input", input_shape, dy}, {"weight", w}, options, &output);
  call.w = w;
  call.dy = dy;
  return call;
}

ConvCall backward_weight_call(const Tensor& dy, const Tensor& x, const Shape& weight_shape,
                              const ConvOptions& options) {
  const ConvOperand output("dy", dy);
  ConvCall call =
      checked_call(ConvPass::backward_weight, {"input", x}, {"weight", weight_shape, x}, options, &output);
  call.x = x;
  call.dy = dy;
  return call;
}

namespace {

/// Runs the implementation that is chosen for the call, and records which it is.
Tensor run_chosen(const RecordOp& range, ConvCall call, ConvFusion* fusion) {
  call.fusion = fusion;
  const std::shared_ptr<const ConvImplementation> implementation = choose(call);
  range.details([&] {
    return RangeDetails{.implementation = implementation->name(),
                        .flops = static_cast<double>(call.problem.flops())};
  });
  return call.run(*implementation);
}

}  // namespace

Tensor conv_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options,
                    ConvFusion* fusion) {
  const RecordOp range(conv_name(w.shape()), x, w, bias);
  return run_chosen(range, forward_call(x, w, bias, options), fusion);
}

Tensor conv_backward_input(const Tensor& dy, const Tensor& w, const Sizes& input_shape,
                           const ConvOptions& options, ConvFusion* fusion) {
  const RecordOp range(conv_name(w.shape()), "_backward_input", dy, w);
  return run_chosen(range, backward_input_call(dy, w, input_shape, options), fusion);
}

Tensor conv_backward_weight(const Tensor& dy, const Tensor& x, const Sizes& weight_shape,
                            const ConvOptions& options, ConvFusion* fusion) {
  const RecordOp range(conv_name(weight_shape), "_backward_weight", dy, x);
  return run_chosen(range, backward_weight_call(dy, x, weight_shape, options), fusion);
}

Tensor conv_backward_bias(const Tensor& dy) {
  const RecordOp range("conv_backward_bias", dy);
  check<ShapeError>(dy.rank() >= 2, "conv_backward_bias: needs [N, K, ...], got {}", dy);
  Dims dims{0};
  for (int64_t d = 2; d < dy.rank(); ++d) dims.push_back(d);
  return reduce_sum(dy, dims);
}

}  // namespace pleat::ops
