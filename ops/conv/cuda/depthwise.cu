#include <algorithm>
#include <optional>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/conv/cuda/depthwise_tiles.h"
#include "pleat/ops/conv/cuda/pixels.h"
#include "pleat/ops/conv/implementation.h"

/// Depthwise convolution on a GPU, in both formats: every channel has kernels of its own, so
/// that there is no matrix product to make use of, and each result is a sum over few taps. Forward and
/// backward_input give a thread neighbouring channels of a few lines; backward_weight gives it some taps of a
/// part of them, whose sums are added in order.
///
/// Why it is here beside cuDNN's: without cuDNN there is `unfold` alone, which writes every input once for
/// each tap, reads that again, and multiplies a matrix of one row for each channel. `unfold` stays for what
/// does not fit into tiles, and for the gradient of the input where a channel has several outputs or where
/// both stride and dilation are above 1.

namespace pleat::ops {

const ConvImplementation* unfold_conv_cuda();

namespace {

using namespace cuda_conv;
using namespace image_tiles;
using namespace depthwise;

/// With one group there is nothing that a matrix product would not do better.
bool is_depthwise(const ConvProblem& p) { return p.groups > 1 && p.groups == p.in_channels; }

/// What the tiles of dw have, beside those of x: elements of dy, and sums of taps.
constexpr int64_t most_sums = 4096;

/// partials[part][tap][K] = sums of dy x over some tiles of a channel, of `width` neighbouring channels. A
/// thread adds up some taps of some columns.
template <class T, std::size_t width>
struct DepthwiseWeightTiles : DepthwiseBase<T, width> {
  static constexpr bool keeps_registers = true;
  using Base = DepthwiseBase<T, width>;
  using Base::channel_step, Base::multiplier, Base::slots, Base::taps, Base::tile, Base::to;
  using typename Base::Element;
  using Tile = SharedArray<Element, shared_bytes / sizeof(Element)>;
  using Gradients = SharedArray<Element, result_bytes / sizeof(Element)>;
  static constexpr uint32_t taps_at_once = 3;
  int64_t parts, tiles_of_channel, tiles_of_part, size;
  uint32_t chunks;         ///< of taps: number, number + chunks, ...
  Divider<uint32_t> jobs;  ///< channels and chunks, or as many as there are threads
  uint32_t all_jobs;
  uint32_t column, pitch;  ///< of elements of dy, from a column or a channel to the next
  const T* dy;
  Sum<T>* partials;

  DepthwiseWeightTiles(const TilePlan& plan, const Sums& sums, int64_t parts_, const T* x_, const T* dy_,
                       Sum<T>* partials_)
      : Base(plan, sums, x_),
        parts(parts_),
        tiles_of_channel(plan.tiles() / ceil_div(plan.size[channel], plan.tile[channel])),
        tiles_of_part(ceil_div(tiles_of_channel, parts)),
        size(sums.problem.out_channels * sums.problem.taps()),
        chunks((taps + taps_at_once - 1) / taps_at_once),
        all_jobs(chunks * tile[channel].divisor()),
        column(static_cast<uint32_t>(plan.column())),
        pitch(static_cast<uint32_t>(plan.apart(plan.tile[out_w] * plan.column()))),
        dy(dy_),
        partials(partials_) {
    jobs = Divider<uint32_t>(std::min<int64_t>(all_jobs, block_threads));
  }

  __device__ void operator()(int64_t number, const Block& block) const {
    static_assert(keeps_registers);
    const Tile shared;
    const typename Base::Lines lines;
    const typename Base::Groups groups;
    const Gradients gradients;
    const typename Base::TapOffsets tap_offsets;
    const SharedArray<Element, most_sums / sizeof(Element)> sums;
    const auto thread = static_cast<uint32_t>(block.thread());
    const int64_t part = number % parts, first = number / parts * tiles_of_channel;
    const int64_t begin = first + part * tiles_of_part;
    const int64_t end = std::min(begin + tiles_of_part, first + tiles_of_channel);
    this->find_taps(thread, tap_offsets);
    uint32_t job = thread;
    const uint32_t split = jobs.divide(job), splits = block_threads / jobs.divisor();
    for (uint32_t m = 0; m < multiplier; ++m)
      for (int64_t number_of_tile = begin; number_of_tile < end; ++number_of_tile) {
        const auto at = this->place(number_of_tile, thread);
        this->find_groups(at, thread, groups);
        this->load_x(at, thread, shared, lines);
        const T* const gradient = dy + this->first_result(at) + m * to.channel;
        this->for_each_column(
            at, thread,
            [&](uint32_t c, uint32_t w, uint32_t, uint32_t, int64_t result, uint32_t group, uint32_t step) {
              for (; group < slots; group += step) {
                const Group each = groups.read(static_cast<int>(group));
                const T* source = gradient + result + each.result;
                for (uint32_t row = 0; row < each.count(); ++row, source += this->row_step())
                  gradients.write(
                      static_cast<int>(c * pitch + w * column + each.row + row),
                      this->sums_of(source, multiplier == 1 && to.channel == 1, multiplier * to.channel));
              }
            });
        __syncthreads();
        const auto finish = [&](uint32_t chunk, uint32_t c, uint32_t i, Element total) {
          const uint32_t tap = chunk + i * chunks;
          if (tap >= taps || c >= at.count[channel]) return;
          const auto sum = static_cast<int>(tap * tile[channel].divisor() + c);
          if (number_of_tile > begin) add(total, sums.read(sum));
          if (number_of_tile + 1 < end) return sums.write(sum, total);
          for (std::size_t j = 0; j < width; ++j)
            partials[part * size + tap * (size / taps) + this->result_channel(at.first[channel] + c, j, m)] =
                total.lane[j];
        };
        Element total[taps_at_once];
        for (uint32_t each = job; each < all_jobs && split < splits; each += jobs.divisor()) {
          uint32_t c = each;
          const uint32_t chunk = tile[channel].divide(c);
          for (Element& one : total) one = {};
          if (c < at.count[channel])
            add_up(at, shared, gradients, groups, tap_offsets, chunk, c, split, splits, total);
          PLEAT_UNROLL
          for (uint32_t i = 0; i < taps_at_once; ++i)
            if (splits == 1) finish(chunk, c, i, total[i]);
        }
        __syncthreads();  // until x has been read
        if (splits > 1) {
          PLEAT_UNROLL
          for (uint32_t i = 0; i < taps_at_once; ++i)
            if (split < splits) shared.write(static_cast<int>(i * splits * all_jobs + thread), total[i]);
          __syncthreads();
          for (uint32_t sum = thread; sum < taps_at_once * all_jobs; sum += block_threads) {
            uint32_t c = sum;
            const uint32_t i = jobs.divide(c), place = i * splits * all_jobs + c;
            Element all = shared.read(static_cast<int>(place));
            for (uint32_t other = 1; other < splits; ++other)
              add(all, shared.read(static_cast<int>(place + other * all_jobs)));
            const uint32_t chunk = tile[channel].divide(c);
            finish(chunk, c, i, all);
          }
          __syncthreads();  // the next tile
        }
      }
  }

 private:
  __device__ static void add(Element& total, const Element& other) {
    for (std::size_t j = 0; j < width; ++j) total.lane[j] += other.lane[j];
  }
  /// The units split, split + splits, ... of a column's groups.
  __device__ void add_up(const typename Base::Place& at, const Tile& shared, const Gradients& gradients,
                         const typename Base::Groups& groups, const typename Base::TapOffsets& tap_offsets,
                         uint32_t chunk, uint32_t c, uint32_t split, uint32_t splits, Element* total) const {
    uint32_t place[taps_at_once];
    PLEAT_UNROLL
    for (uint32_t i = 0; i < taps_at_once; ++i)
      place[i] =
          c * channel_step + tap_offsets.read(static_cast<int>(std::min(chunk + i * chunks, taps - 1)));
    const bool slides = place[1] == place[0] + 1 && place[2] == place[0] + 2;
    const uint32_t units = this->width_of_tile.divisor() * slots;
    for (uint32_t unit = split; unit < units; unit += splits) {
      uint32_t w = unit;
      const Group group = groups.read(static_cast<int>(this->width_of_tile.divide(w)));
      if (w >= at.count[out_w]) continue;
      uint32_t x_place = group.shared + w * this->along[2].pixel_step;
      uint32_t dy_place = c * pitch + w * column + group.row;
      if (group.count() == group_rows && slides) {
        add_rows<group_rows, true>(shared, gradients, place, x_place, dy_place, total);
      } else if (group.count() == group_rows) {
        add_rows<group_rows, false>(shared, gradients, place, x_place, dy_place, total);
      } else {
        for (uint32_t row = 0; row < group.count(); ++row, ++x_place, ++dy_place)
          add_rows<1, false>(shared, gradients, place, x_place, dy_place, total);
      }
    }
  }
  /// `slides`: the taps lie side by side, as rows do.
  template <uint32_t rows, bool slides>
  __device__ static void add_rows(const Tile& shared, const Gradients& gradients, const uint32_t* place,
                                  uint32_t x_place, uint32_t dy_place, Element* total) {
    Element gradient[rows], value[rows + taps_at_once - 1];
    PLEAT_UNROLL
    for (uint32_t k = 0; k < rows; ++k) gradient[k] = gradients.read(static_cast<int>(dy_place + k));
    PLEAT_UNROLL
    for (uint32_t i = 0; i < taps_at_once; ++i) {
      const uint32_t known = slides && i > 0 ? rows - 1 : 0;
      PLEAT_UNROLL
      for (uint32_t k = known; k < rows; ++k)
        value[slides ? i + k : k] = shared.read(static_cast<int>(x_place + place[i] + k));
      PLEAT_UNROLL
      for (uint32_t k = 0; k < rows; ++k)
        for (std::size_t j = 0; j < width; ++j)
          total[i].lane[j] += value[slides ? i + k : k].lane[j] * gradient[k].lane[j];
    }
  }
};

/// dw[k][tap] = the parts [tap][k], added up in order.
template <class T>
struct SumTapParts {
  int64_t parts, size, taps;
  FastDivider channels;
  const Sum<T>* partials;
  T* dw;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    Sum<T> sum = partials[i];
    for (int64_t part = 1; part < parts; ++part) sum += partials[part * size + i];
    int64_t k = i;
    const int64_t tap = channels.divide(k);
    dw[k * taps + tap] = convert<T>(sum);
  }
};

/// Parts of the images whose sums for dw are added up in order; none is empty.
int64_t sum_parts(const TilePlan& plan) {
  constexpr int64_t wanted = 1056;  // eight blocks for each multiprocessor of the largest GPUs
  const int64_t channels = ceil_div(plan.size[channel], plan.tile[channel]);
  const int64_t tiles = plan.tiles() / channels;
  return ceil_div(tiles, ceil_div(tiles, std::clamp<int64_t>(wanted / channels, 1, tiles)));
}

/// The tiles for dw.
std::optional<TilePlan> sum_plan(const ConvProblem& p, int64_t width) {
  const int64_t bytes = width * sum_bytes(p);
  return tile_plan(Sums(p), width, most_sums / (bytes * p.taps()), result_bytes / bytes, shared_bytes);
}
/// Channels of an element where addresses allow several.
int64_t sum_width(const ConvProblem& p) {
  const auto most = static_cast<int64_t>(wide);
  return p.in_channels % most == 0 && sum_plan(p, most) ? most : 1;
}

class DirectConvCuda : public ConvImplementation {
 public:
  std::string_view name() const override { return "direct"; }
  bool runs_on(Device device) const override { return device.is_cuda(); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    if (!problem.device.is_cuda()) return "it runs on CUDA";
    return is_depthwise(problem) ? std::string()
                                 : std::string("on CUDA it needs as many groups, above 1, as input channels");
  }
  ConvLayout layout(const ConvProblem& problem) const override { return requested_layout(problem); }
  bool takes(DType) const override { return true; }
  /// Below cuDNN's: depthwise convolutions read and write much for each product and gain nothing from matrix
  /// products. That this is the faster there is reasoned, not measured on a GPU.
  double cost(const ConvProblem& p, ConvPass pass) const override {
    if (pass == ConvPass::backward_input && p.group_out() > 1) return unfold_conv_cuda()->cost(p, pass);
    return static_cast<double>(p.flops()) / 4;
  }
  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    if (p.batch == 0) return 0;
    if (pass != ConvPass::backward_weight)
      return by_tiles(pass == ConvPass::forward ? Sums(p) : Sums::for_input(p))
                 ? 0
                 : unfold_conv_cuda()->workspace_bytes(p, pass);
    const auto plan = sum_plan(p, sum_width(p));
    return plan ? sum_parts(*plan) * p.out_channels * p.taps() * sum_bytes(p)
                : unfold_conv_cuda()->workspace_bytes(p, pass);
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    const Sums sums(p);
    if (!by_tiles(sums)) return unfold_conv_cuda()->forward(p, x, w, bias, y);
    by_stored_type(p, [&]<class T>(Type<T>) {
      multiply_by_tiles<T>(sums, x.data<T>(), w.data<T>(), bias.defined() ? bias.data<T>() : nullptr,
                           y.data<T>());
    });
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    const Sums sums = Sums::for_input(p);
    if (!by_tiles(sums)) return unfold_conv_cuda()->backward_input(p, dy, w, dx);
    by_stored_type(p, [&]<class T>(Type<T>) {
      multiply_by_tiles<T>(sums, dy.data<T>(), w.data<T>(), nullptr, dx.data<T>());
    });
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    if (!sum_plan(p, 1)) return unfold_conv_cuda()->backward_weight(p, dy, x, dw);
    by_stored_type(p, [&]<class T>(Type<T>) {
      const auto sum = [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
        const auto plan = sum_plan(p, width);
        if (!plan) return false;
        const int64_t parts = sum_parts(*plan);
        const Tensor partials = scratch_on<Sum<T>>(p.device, parts * dw.numel());
        launch_blocks(op, p.device, ceil_div(plan->size[channel], plan->tile[channel]) * parts,
                      DepthwiseWeightTiles<T, width>(*plan, Sums(p), parts, x.data<T>(), dy.data<T>(),
                                                     partials.data<Sum<T>>()));
        launch_indices(op, p.device, dw.numel(),
                       SumTapParts<T>{parts, dw.numel(), p.taps(), FastDivider(p.out_channels),
                                      partials.data<Sum<T>>(), dw.data<T>()});
        return true;
      };
      bool done = false;
      by_width<wide, T>(p.in_channels, {x.data<T>(), dy.data<T>()}, [&](auto width) { done = sum(width); });
      if (!done) sum(std::integral_constant<std::size_t, 1>{});
    });
  }
};

}  // namespace

const ConvImplementation* direct_conv_cuda() {
  static const auto* const implementation = new DirectConvCuda;
  return implementation;
}

}  // namespace pleat::ops
