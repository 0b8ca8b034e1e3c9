#include "pleat/ops/conv/cpu/direct.h"

#include <algorithm>

#include "pleat/core/base/format.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/fusion.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/nhwc.h"
#include "pleat/ops/matmul/result_finish.h"

/// The implementation `direct` on the CPU: forward and the gradient of the input as gathers (gather.h), the
/// gradient of the weight by itself (direct_weight.cpp). Nothing is unfolded.

namespace pleat::ops {
namespace {

/// Elements set to 0 at a time.
constexpr int64_t fill_grain = 1 << 16;

template <class T>
DirectKernel<T> kernel_for(const Gather& gather) {
  for (const auto& kernel : {groups_kernel<T>, lanes_kernel<T>, few_channels_kernel<T>})
    if (kernel().suits(gather)) return kernel();
  return panels_kernel<T>();
}

class DirectConv : public ConvImplementation {
 public:
  std::string_view name() const override { return "direct"; }

  bool runs_on(Device device) const override { return device.is_cpu(); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    return problem.device.is_cpu() ? std::string() : std::string("it runs on the CPU");
  }
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::nhwc; }

  /// Taps on padding cost nothing. Beyond a vector of channels, half vectors cost as much as full ones. To
  /// write a gradient of the weight takes as long as some products, measured on 512 channels at batch 1.
  double cost(const ConvProblem& p, ConvPass pass) const override {
    const int64_t channels = pass == ConvPass::backward_input ? p.group_in() : p.group_out();
    const int64_t half_vector = std::max(simd::register_bytes / 2, 16) / size_of(compute_dtype(p.dtype));
    const int64_t computed = channels > 2 * half_vector ? round_up(channels, half_vector) : channels;
    const double written =
        pass == ConvPass::backward_weight ? 24 * static_cast<double>(p.out_channels * p.depth()) : 0;
    return p.valid_flops() / 2 * static_cast<double>(computed) / static_cast<double>(channels) *
               cost_of_few(p, pass) +
           written + cost_of_conversion(p);
  }

  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    if (p.batch == 0) return 0;
    if (pass == ConvPass::backward_weight) return direct_weight_workspace(p);
    GatherMemory all{0, 0};
    by_type(p, [&]<class T>(Type<T>) {
      const auto gathers =
          pass == ConvPass::forward ? std::vector{forward_gather(p)} : backward_input_gathers(p);
      for (const Gather& gather : gathers) {
        if (gather.taps() == 0) continue;
        const GatherMemory memory = kernel_for<T>(gather).memory(gather);
        all.weights += memory.weights;
        all.buffer = std::max(all.buffer, memory.buffer);
      }
    });
    return all.weights + num_threads() * all.buffer;
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    by_type(p, [&]<class T>(Type<T>) { run_forward<T>(p, x, w, bias, y, nullptr); });
  }
  bool fused_forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
                     const Tensor& y, ConvFusion& fusion) const override {
    if (fusion.by != nullptr) return false;
    by_type(p, [&]<class T>(Type<T>) {
      if (!kernel_for<T>(forward_gather(p)).makes_sums) return;
      ChannelSums<T> sums;
      run_forward<T>(p, x, w, bias, y, &sums);
      fusion.moments = {std::move(sums.first), std::move(sums.second)};
    });
    return fusion.moments.has_value();
  }

  std::unique_ptr<PreparedConv> prepare(const ConvProblem& p, const Tensor& w,
                                        SharedBlocks& shared) const override {
    std::unique_ptr<PreparedConv> prepared;
    by_type(p, [&]<class T>(Type<T>) { prepared = std::make_unique<Prepared<T>>(p, w, shared); });
    return prepared;
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_type(p, [&]<class T>(Type<T>) { run_backward_input<T>(p, dy, w, dx, nullptr); });
  }
  bool fused_backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w, const Tensor& dx,
                            ConvFusion& fusion) const override {
    by_type(p, [&]<class T>(Type<T>) {
      const auto gathers = backward_input_gathers(p);
      const bool all_make_sums = std::all_of(gathers.begin(), gathers.end(), [](const Gather& gather) {
        return gather.taps() == 0 || kernel_for<T>(gather).makes_sums;
      });
      if (!all_make_sums) return;
      ChannelSums<T> sums(*fusion.by, fusion.x.data<T>());
      run_backward_input<T>(p, dy, w, dx, &sums);
      fusion.sums = {std::move(sums.first), std::move(sums.second)};
    });
    return fusion.sums.has_value();
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    by_type(p, [&]<class T>(Type<T>) { direct_backward_weight(p, dy.data<T>(), x.data<T>(), dw.data<T>()); });
  }

 private:
  /// What a product grows by where the result has few channels, by the first class of the input's pixels.
  static double cost_of_few(const ConvProblem& p, ConvPass pass) {
    const int64_t channels = pass == ConvPass::forward ? p.group_out() : p.group_in();
    if (pass == ConvPass::backward_weight || channels > most_few_channels) return 1;
    const Gather gather = pass == ConvPass::forward ? forward_gather(p) : first_backward_input_gather(p);
    double factor = 1;
    by_type(p, [&]<class T>(Type<T>) { factor = few_channels_cost<T>(gather); });
    return factor;
  }

  template <class T>
  class Prepared : public PreparedConv {
   public:
    Prepared(const ConvProblem& p, const Tensor& w, SharedBlocks& shared)
        : tasks_(forward_tasks(p, w.data<T>(), &shared)) {}
    void run(const Tensor& x, const Tensor& bias, const Tensor& y,
             const ResultFinish& finish) const override {
      run_tasks(tasks_, operands_of<T>(x, bias, y, {.finish = RowFinish<T>(finish)}));
    }

   private:
    GatherTasks<T> tasks_;
  };

  template <class T>
  static GatherTasks<T> forward_tasks(const ConvProblem& p, const T* w, SharedBlocks* shared = nullptr) {
    const Gather gather = forward_gather(p);
    return kernel_for<T>(gather).tasks(gather, forward_weights(gather, p, w, shared));
  }
  template <class T>
  static GatherOperands<T> operands_of(const Tensor& x, const Tensor& bias, const Tensor& y,
                                       const Completion<T>& completion) {
    return {x.data<T>(), bias.defined() ? bias.data<T>() : nullptr, y.data<T>(), completion};
  }
  template <class T>
  static void run_tasks(const GatherTasks<T>& tasks, const GatherOperands<T>& operands) {
    parallel_chunks(tasks.count, [&](int64_t task) { tasks.run(task, operands); });
  }

  /// `sums` may be null, and are made of y.
  template <class T>
  static void run_forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
                          const Tensor& y, ChannelSums<T>* sums) {
    const GatherTasks<T> tasks = forward_tasks(p, w.data<T>());
    if (sums != nullptr) sums->prepare(tasks.parts, p.out_channels);
    run_tasks(tasks, operands_of<T>(x, bias, y, {.sums = sums}));
    if (sums != nullptr) sums->merge(0, 0, p.out_channels);
  }

  template <class T>
  static void run_backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w, const Tensor& dx,
                                 ChannelSums<T>* sums) {
    const auto gathers = backward_input_gathers(p);
    const auto is_empty = [](const Gather& gather) { return gather.taps() == 0; };
    if (std::any_of(gathers.begin(), gathers.end(), is_empty))
      parallel_for(0, dx.numel(), fill_grain, [to = dx.data<T>()](int64_t begin, int64_t end) {
        std::fill(to + begin, to + end, T(0));
      });
    // Tasks of the same number in all classes: they read and write the same lines.
    std::vector<std::pair<GatherTasks<T>, GatherOperands<T>>> classes;
    int64_t most = 0, parts = 0;
    for (const Gather& gather : gathers) {
      if (is_empty(gather)) continue;
      classes.emplace_back(
          kernel_for<T>(gather).tasks(gather, backward_input_weights(gather, p, w.data<T>())),
          operands_of<T>(dy, {}, dx, {.sums = sums, .first_part = parts}));
      most = std::max(most, classes.back().first.count);
      parts += classes.back().first.parts;
    }
    if (sums != nullptr) sums->prepare(parts, p.in_channels);
    parallel_chunks(most, [&](int64_t task) {
      for (const auto& [tasks, operands] : classes)
        if (task < tasks.count) tasks.run(task, operands);
    });
    if (sums != nullptr) sums->merge(0, 0, p.in_channels);
  }
};

}  // namespace

const ConvImplementation* direct_conv() {
  static const auto* const implementation = new DirectConv;
  return implementation;
}

}  // namespace pleat::ops
