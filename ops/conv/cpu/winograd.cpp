#include "pleat/ops/conv/cpu/winograd.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/fusion.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/nhwc.h"
#include "pleat/ops/matmul/result_finish.h"

/// The implementation `winograd` on the CPU, with the plans f2 and f4: tiles of 2 or 4 results a dimension.

namespace pleat::ops {

namespace winograd {
namespace {

/// The dimensions of kernels in parts of so many taps.
std::optional<Kernels> find_kernels(const ConvProblem& p, int taps) {
  std::size_t tiled[2], others[3];
  int tiles = 0, rest = 0;
  for (std::size_t d = 3; d-- > 0;) {
    const bool is_tiled = std::min(p.dilation[d], p.stride[d]) == 1 && p.kernel[d] % p.stride[d] == 0 &&
                          p.kernel[d] / p.stride[d] >= taps && tiles < 2;
    if (!is_tiled && !p.is_pointwise(d) && (p.stride[d] != 1 || p.dilation[d] != 1)) return std::nullopt;
    (is_tiled ? tiled[tiles++] : others[rest++]) = d;
  }
  if (tiles == 0) return std::nullopt;
  if (tiles == 2) return Kernels{tiled[1], tiled[0], others[0], 2, taps};
  // Along a there is no kernel; the line is the kernel's, else short.
  const auto first_choice = [&](std::size_t d, std::size_t e) {
    return p.is_pointwise(d) && (!p.is_pointwise(e) || p.output[d] > p.output[e]);
  };
  if (!first_choice(others[0], others[1])) std::swap(others[0], others[1]);
  if (!p.is_pointwise(others[0])) return std::nullopt;
  return Kernels{others[0], tiled[0], others[1], 1, taps};
}

/// Products of a result of tiles of 4, times 64.
int64_t products(const ConvProblem& p, const Kernels& kernels) {
  int64_t products = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    const bool is_tiled = d == kernels.b || (kernels.count == 2 && d == kernels.a);
    products *= is_tiled ? p.stride[d] * ceil_div(p.kernel[d] / p.stride[d], int64_t{kernels.taps}) *
                               (kernels.taps + 3)
                         : p.kernel[d] * 4;
  }
  return products;
}

}  // namespace

std::optional<Kernels> find_kernels(const ConvProblem& p) {
  const auto of_three = find_kernels(p, 3), of_two = find_kernels(p, 2);
  if (!of_three || !of_two) return of_three ? of_three : of_two;
  return products(p, *of_three) <= products(p, *of_two) ? of_three : of_two;
}

}  // namespace winograd

namespace {

/// The cost of a pass (ConvImplementation::cost) with tiles of m results.
double cost_of(const ConvProblem& p, int m, ConvPass pass) {
  double cost = 0;
  for (const Gather& gather : gathers_of(p, pass)) {
    const winograd::TileGrid grid(gather, *winograd::find_kernels(p), m);
    const auto points = static_cast<double>(grid.points), phases = static_cast<double>(grid.phases);
    const bool is_weight = pass == ConvPass::backward_weight;
    const double slices = static_cast<double>(grid.columns()) * static_cast<double>(grid.slices);
    const double windows = slices * phases;
    const double tiles =
        is_weight ? slices : static_cast<double>(grid.columns()) * static_cast<double>(grid.lines);
    const auto in_vectors = [&](int64_t count) {
      return static_cast<double>(round_up(count, simd::register_bytes / size_of(compute_dtype(p.dtype))));
    };
    const double channels = in_vectors(gather.source_channels), filters = in_vectors(gather.result_channels);
    // Vectors of products lie along the filters, those of the gradient of the weight along the channels.
    const double pairs = static_cast<double>(grid.line_taps) * phases *
                         (is_weight ? channels * static_cast<double>(gather.result_channels)
                                    : static_cast<double>(gather.source_channels) * filters);
    const double transforms =
        is_weight ? windows * (4 * channels + 12 * filters) : windows * 14 * channels + tiles * 9 * filters;
    // Transformed weights are written to a cache, or to memory, and read from there by each task.
    const double bytes = points * pairs * static_cast<double>(size_of(p.dtype));
    const double of_weight = is_weight || bytes < 1e6 ? 12 : bytes < 16e6 ? 65 : 160;
    // Fitted to 70 problems, within a tenth: an element takes as long as some multiply-adds, mostly of moving
    // it, and each tile as long as some more. `direct` takes 1.1 times its cost, so where both take as long,
    // it is chosen; so it is for 2 taps along one dimension, which save least and wait for memory.
    const winograd::Kernels& kernels = grid.kernels;
    const double bias = kernels.count == 1 && kernels.taps == 2 ? 1.25 : 1;
    cost += bias * (points * (tiles * (is_weight ? 1.2 : 1.05) * pairs + transforms + of_weight * pairs) +
                    (is_weight ? windows * 8500 : windows * 2100 + tiles * 4500));
  }
  return cost;
}

class WinogradConv : public ConvImplementation {
 public:
  explicit WinogradConv(int m = 0) : m_(m) {}

  std::string_view name() const override { return "winograd"; }
  bool runs_on(Device device) const override { return device.is_cpu(); }

  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    if (!problem.device.is_cpu()) return "it runs on the CPU";
    if (problem.groups != 1) return "it needs groups = 1";
    if (!winograd::find_kernels(simplify(problem, MemoryFormat::channels_last)))
      return "it needs kernels of as many taps as 2 or more steps of the stride along one or two dimensions, "
             "with stride or dilation 1";
    const int64_t least = compute_dtype(problem.dtype) == float64 ? 8 : 16;
    if (std::min(problem.in_channels, problem.out_channels) < least)
      return fmt::format("it needs at least {} input and output channels", least);
    return {};
  }
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::nhwc; }

  std::vector<std::string> plans(const ConvProblem& p, ConvPass pass) const override {
    return tile(p, pass) == 4 ? std::vector<std::string>{"f4", "f2"} : std::vector<std::string>{"f2", "f4"};
  }
  std::shared_ptr<const ConvImplementation> with_plan(const std::string& plan) const override {
    if (plan == "f2") return std::make_shared<WinogradConv>(2);
    if (plan == "f4") return std::make_shared<WinogradConv>(4);
    return nullptr;
  }

  double cost(const ConvProblem& problem, ConvPass pass) const override {
    const ConvProblem p = simplify(problem, MemoryFormat::channels_last);
    const double products =
        m_ != 0 ? cost_of(p, m_, pass) : std::min(cost_of(p, 2, pass), cost_of(p, 4, pass));
    return products + cost_of_conversion(problem);
  }

  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    if (p.batch == 0) return 0;
    int64_t bytes = 0;
    const int m = tile(p, pass);
    by_type(p, [&]<class T>(Type<T>) {
      if (pass == ConvPass::backward_weight)
        bytes = winograd::weight_gradient_workspace<T>(p, m);
      else
        for (const Gather& gather : gathers_of(p, pass))
          bytes = std::max(bytes, winograd::multiply_workspace<T>(gather, *winograd::find_kernels(p), m));
    });
    return bytes;
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    run_forward(p, x, w, bias, y, nullptr);
  }
  bool fused_forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
                     const Tensor& y, ConvFusion& fusion) const override {
    run_forward(p, x, w, bias, y, &fusion);
    return true;
  }

  std::unique_ptr<PreparedConv> prepare(const ConvProblem& p, ConvPass pass, const Tensor& w,
                                        SharedBlocks& shared) const override {
    std::unique_ptr<PreparedConv> prepared;
    by_type(p, [&]<class T>(Type<T>) {
      prepared = std::make_unique<Prepared<T>>(p, pass, tile(p, pass), w, shared);
    });
    return prepared;
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    for (const Gather& gather : gathers_of(p, ConvPass::backward_input))
      run_backward_input(p, gather, dy, w, dx, nullptr);
  }
  bool fused_backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w, const Tensor& dx,
                            ConvFusion& fusion) const override {
    const std::vector<Gather> gathers = gathers_of(p, ConvPass::backward_input);
    if (gathers.size() > 1) return false;
    run_backward_input(p, gathers[0], dy, w, dx, &fusion);
    return true;
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    run_backward_weight(p, dy, x, dw, nullptr);
  }
  bool fused_backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x, const Tensor& dw,
                             ConvFusion& fusion) const override {
    run_backward_weight(p, dy, x, dw, fusion.by);
    return true;
  }

 private:
  template <class T>
  class Prepared : public PreparedConv {
   public:
    Prepared(const ConvProblem& p, ConvPass pass, int m, const Tensor& w, SharedBlocks& shared)
        : kernels_(*winograd::find_kernels(p)), m_(m), held_(w) {
      for (const Gather& gather : gathers_of(p, pass))
        parts_.emplace_back(
            gather, winograd::transform_weights(gather, kernels_, m,
                                                gather_weights(gather, p, pass, w.data<T>(), &shared)));
    }
    void run(const Tensor& x, const Tensor& bias, const Tensor& y,
             const ResultFinish& finish) const override {
      for (const auto& [gather, weights] : parts_)
        winograd::multiply<T>(gather, kernels_, m_, ConvSource<T>(x), weights,
                              bias.defined() ? bias.data<T>() : nullptr, y.data<T>(), nullptr,
                              RowFinish<T>(finish));
    }

   private:
    winograd::Kernels kernels_;
    int m_;
    Tensor held_;
    std::vector<std::pair<Gather, winograd::TransformedWeights<T>>> parts_;
  };

  /// `fusion`, here and below, may be null.
  void run_forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
                   const Tensor& y, ConvFusion* fusion) const {
    const Gather gather = forward_gather(p);
    by_type(p, [&]<class T>(Type<T>) {
      ChannelSums<T> sums;
      const bool makes_sums = fusion != nullptr && fusion->wants_moments;
      const winograd::Kernels kernels = *winograd::find_kernels(p);
      const int m = tile(p, ConvPass::forward);
      winograd::multiply<T>(
          gather, kernels, m, ConvSource<T>(x, fusion != nullptr ? fusion->by : nullptr),
          winograd::transform_weights(gather, kernels, m,
                                      gather_weights(gather, p, ConvPass::forward, w.data<T>())),
          bias.defined() ? bias.data<T>() : nullptr, y.data<T>(), makes_sums ? &sums : nullptr);
      if (makes_sums) fusion->moments = {std::move(sums.first), std::move(sums.second)};
    });
  }

  void run_backward_input(const ConvProblem& p, const Gather& gather, const Tensor& dy, const Tensor& w,
                          const Tensor& dx, ConvFusion* fusion) const {
    by_type(p, [&]<class T>(Type<T>) {
      std::optional<ChannelSums<T>> sums;
      if (fusion != nullptr) sums.emplace(*fusion->by, fusion->x.data<T>());
      const winograd::Kernels kernels = *winograd::find_kernels(p);
      const int m = tile(p, ConvPass::backward_input);
      winograd::multiply<T>(
          gather, kernels, m, ConvSource<T>(dy),
          winograd::transform_weights(gather, kernels, m,
                                      gather_weights(gather, p, ConvPass::backward_input, w.data<T>())),
          nullptr, dx.data<T>(), sums ? &*sums : nullptr);
      if (sums) fusion->sums = {std::move(sums->first), std::move(sums->second)};
    });
  }

  void run_backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x, const Tensor& dw,
                           const Normalization* by) const {
    by_type(p, [&]<class T>(Type<T>) {
      winograd::weight_gradient(p, tile(p, ConvPass::backward_weight), dy.data<T>(), ConvSource<T>(x, by),
                                dw.data<T>());
    });
  }

  /// Results a dimension of a tile: those of the plan, else what costs less.
  int tile(const ConvProblem& p, ConvPass pass) const {
    if (m_ != 0) return m_;
    return cost_of(p, 4, pass) <= cost_of(p, 2, pass) ? 4 : 2;
  }

  int m_;  ///< 0: chosen by the problem
};

}  // namespace

const ConvImplementation* winograd_conv() {
  static const auto* const implementation = new WinogradConv;
  return implementation;
}

}  // namespace pleat::ops
