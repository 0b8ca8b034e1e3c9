#include "pleat/ops/conv/cpu/direct.h"

#include <algorithm>

#include "pleat/core/base/format.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/nhwc.h"

/// The implementation `direct` on the CPU: forward and the gradient of the input as gathers (gather.h), the
/// gradient of the weight by itself (direct_weight.cpp). Nothing is unfolded.

namespace pleat::ops {
namespace {

/// Elements set to 0 at a time.
constexpr int64_t fill_grain = 1 << 16;

template <class T>
void multiply(const Gather& gather, const T* source, const GatherWeights<T>& weights, const T* bias, T* y) {
  const auto run = few_channels_suit<T>(gather) ? multiply_few<T> : multiply_panels<T>;
  run(gather, source, weights, bias, y);
}

template <class T>
int64_t multiply_workspace(const Gather& gather) {
  return few_channels_suit<T>(gather) ? few_workspace<T>(gather) : panels_workspace<T>(gather);
}

/// w [C, taps] as [taps in the gather's order][C].
template <class T>
std::shared_ptr<std::byte> depthwise_weights(const ConvProblem& p, const Gather& gather, const T* w) {
  const std::vector<int64_t> taps = kernel_taps(gather, p.kernel);
  auto memory = scratch<T>(static_cast<int64_t>(taps.size()) * p.out_channels);
  T* out = elements_of<T>(memory);
  for (const int64_t tap : taps)
    for (int64_t c = 0; c < p.out_channels; ++c) *out++ = w[c * p.taps() + tap];
  return memory;
}

template <class T>
int64_t depthwise_workspace(const Gather& gather) {
  const auto pieces = GatherPieces::for_results(gather, buffer_elements_wanted);
  return (num_threads() * pieces.buffer_elements() + gather.taps() * gather.result_channels) *
         static_cast<int64_t>(sizeof(T));
}

class DirectConv : public ConvImplementation {
 public:
  std::string_view name() const override { return "direct"; }

  bool runs_on(Device device) const override { return device.is_cpu(); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    if (!problem.device.is_cpu()) return "it runs on the CPU";
    const bool able = problem.groups == 1 || is_depthwise(problem);
    return able ? std::string()
                : std::string("it needs groups = 1, or as many groups as input and output channels");
  }
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::nhwc; }

  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    if (p.batch == 0) return 0;
    if (pass == ConvPass::backward_weight) return direct_weight_workspace(p);
    int64_t most = 0;
    by_type(p, [&]<class T>(Type<T>) {
      const auto gathers =
          pass == ConvPass::forward ? std::vector{forward_gather(p)} : backward_input_gathers(p);
      for (const Gather& gather : gathers) {
        if (gather.taps() == 0) continue;
        const int64_t bytes =
            is_depthwise(p) ? depthwise_workspace<T>(gather) : multiply_workspace<T>(gather);
        most = std::max(most, bytes);
      }
    });
    return most;
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    by_type(p, [&]<class T>(Type<T>) {
      const Gather gather = forward_gather(p);
      const T* weights = w.data<T>();
      const T* start = bias.defined() ? bias.data<T>() : nullptr;
      if (is_depthwise(p)) {
        const auto by_tap = depthwise_weights(p, gather, weights);
        return depthwise_gather(gather, x.data<T>(), elements_of<T>(by_tap), start, y.data<T>());
      }
      multiply(gather, x.data<T>(), {weights, kernel_taps(gather, p.kernel), p.in_channels, 1, p.depth()},
               start, y.data<T>());
    });
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_type(p, [&]<class T>(Type<T>) {
      const T* weights = w.data<T>();
      const auto gathers = backward_input_gathers(p);
      const auto is_empty = [](const Gather& gather) { return gather.taps() == 0; };
      if (std::any_of(gathers.begin(), gathers.end(), is_empty))
        parallel_for(0, dx.numel(), fill_grain, [to = dx.data<T>()](int64_t begin, int64_t end) {
          std::fill(to + begin, to + end, T(0));
        });
      for (const Gather& gather : gathers) {
        if (is_empty(gather)) continue;
        if (is_depthwise(p)) {
          const auto by_tap = depthwise_weights(p, gather, weights);
          depthwise_gather<T>(gather, dy.data<T>(), elements_of<T>(by_tap), nullptr, dx.data<T>());
        } else {
          multiply<T>(gather, dy.data<T>(),
                      {weights, kernel_taps(gather, p.kernel), p.in_channels, p.depth(), 1}, nullptr,
                      dx.data<T>());
        }
      }
    });
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    by_type(p, [&]<class T>(Type<T>) { direct_backward_weight(p, dy.data<T>(), x.data<T>(), dw.data<T>()); });
  }
};

}  // namespace

const ConvImplementation& direct_conv() {
  static const DirectConv implementation;
  return implementation;
}

}  // namespace pleat::ops
