#include <tuple>

#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/onednn/onednn.h"

/// oneDNN's convolutions: a yardstick, and a choice by name or by timing. Without a cost, so that it is
/// never taken unasked, and results do not depend on which libraries were there when Pleat was built. They
/// depend on the number of threads.
///
/// Operands are channels-last as they come; weights are copied into blocks of the processor's vectors, as
/// oneDNN asks, at each call.

namespace pleat::ops {
namespace {

using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;
using dnnl::memory;

/// A simplified problem in oneDNN's terms.
class Description {
 public:
  explicit Description(const ConvProblem& p) : first_(p.input[0] == 1 && p.kernel[0] == 1 ? 1 : 0) {
    x = dense(p.batch, p.in_channels, p.input);
    y = dense(p.batch, p.out_channels, p.output);
    w = weights(p);
    any_w_ = {weight_dims_, type, memory::format_tag::any};
    bias = p.bias ? memory::desc({p.out_channels}, type, memory::format_tag::x) : memory::desc();
    stride_ = sizes(p.stride);
    low_ = sizes(p.padding_low);
    high_ = sizes(p.padding_high);
    dilation_ = sizes(p.dilation);
    for (int64_t& one : dilation_) --one;  // oneDNN counts the elements left out
  }

  memory::desc x, w, y, bias;

  /// The arguments of one pass, with weights in any order.
  auto forward() const {
    return std::tuple(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, x, any_w_, bias,
                      y, stride_, dilation_, low_, high_);
  }
  auto gradients() const {
    return std::tuple(dnnl::algorithm::convolution_direct, x, any_w_, y, stride_, dilation_, low_, high_);
  }

 private:
  static constexpr auto type = memory::data_type::f32;

  /// The dimensions that oneDNN is told of: two, or three where there is depth.
  memory::dims sizes(const Spatial& all) const { return {all.begin() + first_, all.end()}; }

  memory::desc dense(int64_t n, int64_t c, const Spatial& spatial) const {
    memory::dims dims = sizes(spatial);
    memory::dims strides = row_major(dims, c);
    const int64_t image = c * spatial[0] * spatial[1] * spatial[2];
    dims.insert(dims.begin(), {n, c});
    strides.insert(strides.begin(), {image, 1});
    return {dims, type, strides};
  }

  memory::desc weights(const ConvProblem& p) {
    memory::dims dims = sizes(p.kernel);
    memory::dims strides = row_major(dims, p.group_in());
    dims.insert(dims.begin(), {p.group_out(), p.group_in()});
    strides.insert(strides.begin(), {p.depth(), 1});
    if (p.groups > 1) {
      dims.insert(dims.begin(), p.groups);
      strides.insert(strides.begin(), p.group_out() * p.depth());
    }
    weight_dims_ = dims;
    return {dims, type, strides};
  }

  /// The strides of spatial dimensions, of which the last has this one.
  static memory::dims row_major(const memory::dims& sizes, int64_t last) {
    memory::dims strides(sizes.size(), last);
    for (std::size_t d = sizes.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * sizes[d];
    return strides;
  }

  int first_;
  memory::dims weight_dims_, stride_, low_, high_, dilation_;
  memory::desc any_w_;
};

convolution_forward::primitive_desc forward_of(const Description& of) {
  return onednn::describe<convolution_forward>(of.forward());
}
convolution_backward_data::primitive_desc data_of(const Description& of) {
  return onednn::describe<convolution_backward_data>(of.gradients(), forward_of(of));
}
convolution_backward_weights::primitive_desc weights_of(const Description& of) {
  return onednn::describe<convolution_backward_weights>(of.gradients(), forward_of(of));
}

class OnednnConv : public ConvImplementation {
 public:
  std::string_view name() const override { return "onednn"; }
  bool runs_on(Device device) const override { return device.is_cpu(); }
  std::string unsupported(const ConvProblem& problem, ConvPass pass) const override {
    if (!problem.device.is_cpu()) return "it runs on the CPU";
    constexpr int64_t block = 16;
    if (pass == ConvPass::backward_weight && problem.taps() == 1 && problem.stride != Spatial{1, 1, 1} &&
        problem.group_in() < block)
      return "oneDNN 2.6 writes beyond its memory for 1x1 kernels with stride and fewer than 16 channels";
    return problem.dtype == float64 ? "oneDNN computes in float32" : "";
  }
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::nhwc; }

  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    if (p.batch == 0) return 0;
    return onednn::call("conv", [&] {
      const Description of(p);
      const auto bytes = [&](const auto& description, const memory::desc& w) {
        return static_cast<int64_t>(description.scratchpad_desc().get_size() +
                                    (w == of.w ? 0 : w.get_size()));
      };
      if (pass == ConvPass::forward) {
        const auto description = forward_of(of);
        return bytes(description, description.weights_desc());
      }
      if (pass == ConvPass::backward_input) {
        const auto description = data_of(of);
        return bytes(description, description.weights_desc());
      }
      const auto description = weights_of(of);
      return bytes(description, description.diff_weights_desc());
    });
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    onednn::call("conv", [&] {
      const Description of(p);
      const auto description = forward_of(of);
      std::unordered_map<int, memory> arguments{
          {DNNL_ARG_SRC, onednn::memory(of.x, x)},
          {DNNL_ARG_WEIGHTS, onednn::reordered(onednn::memory(of.w, w), description.weights_desc())},
          {DNNL_ARG_DST, onednn::memory(of.y, y)}};
      if (p.bias) arguments.emplace(DNNL_ARG_BIAS, onednn::memory(of.bias, bias));
      onednn::execute<convolution_forward>(description, std::move(arguments));
    });
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    onednn::call("conv", [&] {
      const Description of(p);
      const auto description = data_of(of);
      onednn::execute<convolution_backward_data>(
          description,
          {{DNNL_ARG_DIFF_DST, onednn::memory(of.y, dy)},
           {DNNL_ARG_WEIGHTS, onednn::reordered(onednn::memory(of.w, w), description.weights_desc())},
           {DNNL_ARG_DIFF_SRC, onednn::memory(of.x, dx)}});
    });
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    onednn::call("conv", [&] {
      const Description of(p);
      const auto description = weights_of(of);
      const memory result = onednn::memory(of.w, dw);
      const memory blocked = onednn::like(result, description.diff_weights_desc());
      onednn::execute<convolution_backward_weights>(description,
                                                    {{DNNL_ARG_DIFF_DST, onednn::memory(of.y, dy)},
                                                     {DNNL_ARG_SRC, onednn::memory(of.x, x)},
                                                     {DNNL_ARG_DIFF_WEIGHTS, blocked}});
      onednn::copy(blocked, result);
    });
  }
};

}  // namespace

const ConvImplementation* onednn_conv() {
  static const auto* const implementation = new OnednnConv;
  return implementation;
}

}  // namespace pleat::ops
