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
  for (const auto& kernel : {groups_kernel<T>, lines_kernel<T>, lanes_kernel<T>, few_channels_kernel<T>})
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
      for (const Gather& gather : gathers_of(p, pass)) {
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
    by_type(p, [&]<class T>(Type<T>) { Pass<T>(p, ConvPass::forward, w).run(x, bias, y, Completion<T>()); });
  }
  bool fused_forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
                     const Tensor& y, ConvFusion& fusion) const override {
    if (fusion.by != nullptr) return false;
    by_type(p, [&]<class T>(Type<T>) {
      if (!makes_sums<T>(p, ConvPass::forward)) return;
      ChannelSums<T> sums;
      Pass<T>(p, ConvPass::forward, w).run(x, bias, y, {.sums = &sums});
      fusion.moments = {std::move(sums.first), std::move(sums.second)};
    });
    return fusion.moments.has_value();
  }

  std::unique_ptr<PreparedConv> prepare(const ConvProblem& p, ConvPass pass, const Tensor& w,
                                        SharedBlocks& shared) const override {
    std::unique_ptr<PreparedConv> prepared;
    by_type(p, [&]<class T>(Type<T>) { prepared = std::make_unique<Pass<T>>(p, pass, w, &shared); });
    return prepared;
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_type(p, [&]<class T>(Type<T>) {
      Pass<T>(p, ConvPass::backward_input, w).run(dy, {}, dx, Completion<T>());
    });
  }
  bool fused_backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w, const Tensor& dx,
                            ConvFusion& fusion) const override {
    by_type(p, [&]<class T>(Type<T>) {
      if (!makes_sums<T>(p, ConvPass::backward_input)) return;
      ChannelSums<T> sums(*fusion.by, fusion.x.data<T>());
      Pass<T>(p, ConvPass::backward_input, w).run(dy, {}, dx, {.sums = &sums});
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
  static bool makes_sums(const ConvProblem& p, ConvPass pass) {
    const auto gathers = gathers_of(p, pass);
    return std::all_of(gathers.begin(), gathers.end(), [](const Gather& gather) {
      return gather.taps() == 0 || kernel_for<T>(gather).makes_sums;
    });
  }

  /// The gathers of a pass, forward or backward_input, with their weights.
  template <class T>
  class Pass : public PreparedConv {
   public:
    Pass(const ConvProblem& p, ConvPass pass, const Tensor& w, SharedBlocks* shared = nullptr)
        : channels_(pass == ConvPass::forward ? p.out_channels : p.in_channels) {
      for (const Gather& gather : gathers_of(p, pass)) {
        if (gather.taps() == 0) {
          all_reached_ = false;
          continue;
        }
        classes_.emplace_back(
            kernel_for<T>(gather).tasks(gather, gather_weights(gather, p, pass, w.data<T>(), shared)),
            parts_);
        most_ = std::max(most_, classes_.back().first.count);
        parts_ += classes_.back().first.parts;
      }
    }
    void run(const Tensor& x, const Tensor& bias, const Tensor& y,
             const ResultFinish& finish) const override {
      run(x, bias, y, Completion<T>{.finish = RowFinish<T>(finish)});
    }
    void run(const Tensor& x, const Tensor& bias, const Tensor& y, const Completion<T>& completion) const {
      const GatherOperands<T> operands{x.data<T>(), bias.defined() ? bias.data<T>() : nullptr, y.data<T>(),
                                       completion};
      if (!all_reached_) write_unreached(operands, y.numel() / channels_);
      if (completion.sums != nullptr) completion.sums->prepare(parts_, channels_);
      // Tasks of the same number in all classes: they read and write the same lines.
      parallel_chunks(most_, [&](int64_t task) {
        for (const auto& [tasks, first_part] : classes_) {
          GatherOperands<T> of_class = operands;
          of_class.completion.first_part = first_part;
          if (task < tasks.count) tasks.run(task, of_class);
        }
      });
      if (completion.sums != nullptr) completion.sums->merge(0, 0, channels_);
    }

   private:
    /// Results of no taps, in all rows: the others are then written over.
    void write_unreached(const GatherOperands<T>& operands, int64_t rows) const {
      parallel_for(0, rows, ceil_div(fill_grain, channels_), [&](int64_t begin, int64_t end) {
        for (int64_t at = begin * channels_; at < end * channels_; at += channels_) {
          if (operands.bias != nullptr)
            std::copy_n(operands.bias, channels_, operands.y + at);
          else
            std::fill_n(operands.y + at, channels_, T(0));
          operands.completion.finish.run(operands.y + at, at, channels_);
        }
      });
    }

    int64_t channels_;
    bool all_reached_ = true;
    std::vector<std::pair<GatherTasks<T>, int64_t>> classes_;  ///< with the first part of their sums
    int64_t most_ = 0, parts_ = 0;                             ///< tasks of a class; parts of all
  };
};

}  // namespace

const ConvImplementation* direct_conv() {
  static const auto* const implementation = new DirectConv;
  return implementation;
}

}  // namespace pleat::ops
