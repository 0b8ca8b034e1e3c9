#include <cstring>
#include <type_traits>

#include "pleat/core/format.h"
#include "pleat/ops/conv/depthwise.h"
#include "pleat/ops/conv/direct_weight.h"
#include "pleat/ops/conv/gather.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/register_tile.h"

/// Direct convolution in registers: a tile of 8 pixels times one or two vectors of result channels is summed
/// over all taps and channels before it is written once. Nothing is unfolded; a band of source rows is copied
/// with its padding into the second-level cache, and the taps read it from there. (Zhang, Franchetti, Low:
/// "High performance zero-memory overhead direct convolutions", ICML 2018, has the loop order; the tile is
/// chosen for 32 vector registers.)

namespace pleat::ops {
namespace {

constexpr int pixel_tile = 8;

/// The kernel's taps in the order in which a gather reads them.
std::vector<int64_t> kernel_taps(const Gather& gather, const Spatial& kernel) {
  std::vector<int64_t> taps;
  for (const GatherDim::Tap& t : gather.dims[0].taps)
    for (const GatherDim::Tap& r : gather.dims[1].taps)
      for (const GatherDim::Tap& s : gather.dims[2].taps)
        taps.push_back((t.kernel * kernel[1] + r.kernel) * kernel[2] + s.kernel);
  return taps;
}

/// Weights as [panel][depth][channels of the panel], zeros for channels that are not there, in the order in
/// which a gather reads its taps. `at(kernel tap, source channel, result channel)` is the weight.
template <class T, class At>
std::shared_ptr<std::byte> pack_weights(const Gather& gather, const Spatial& kernel, const At& at) {
  const Panels<T> panels{gather.result_channels};
  const int64_t depth = gather.depth();
  auto memory = scratch<T>(panels.padded() * depth);
  const std::vector<int64_t> taps = kernel_taps(gather, kernel);
  parallel_chunks(panels.count(), [&](int64_t panel) {
    const int64_t first = panels.first(panel);
    const int64_t width = panels.vectors(panel) * lanes<T>;
    const int64_t valid = std::min(width, gather.result_channels - first);
    T* out = elements_of<T>(memory) + first * depth;
    for (const int64_t tap : taps)
      for (int64_t c = 0; c < gather.source_channels; ++c, out += width)
        for (int64_t k = 0; k < width; ++k) out[k] = k < valid ? at(tap, c, first + k) : T(0);
  });
  return memory;
}

/// sums[pixel][vector] = start + the products of eight pixels with one panel of weights.
template <class T, int vectors>
void sum_tile(const T* const (&pixels)[pixel_tile], const std::vector<GatherRun>& runs, const T* weights,
              const Vector<T>* start, Vector<T> (&sums)[pixel_tile][vectors]) {
  using V = Vector<T>;
  V total[pixel_tile][vectors];
  for (int i = 0; i < pixel_tile; ++i)
    for (int v = 0; v < vectors; ++v) total[i][v] = start[v];
  for (const GatherRun& run : runs)
    for (int64_t c = run.offset; c < run.offset + run.length; ++c, weights += vectors * lanes<T>) {
      V w[vectors];
      for (int v = 0; v < vectors; ++v) w[v] = *reinterpret_cast<const V*>(weights + v * lanes<T>);
#pragma GCC unroll 8
      for (int i = 0; i < pixel_tile; ++i) {
        const V x = pixels[i][c] - V{};  // the element in every lane
        for (int v = 0; v < vectors; ++v) total[i][v] += x * w[v];
      }
    }
  for (int i = 0; i < pixel_tile; ++i)
    for (int v = 0; v < vectors; ++v) sums[i][v] = total[i][v];
}

/// All pixels of a band times one panel; `y` are the result's elements, `rows` the pixels' rows in it.
template <class T, int vectors>
void multiply_band(const std::vector<GatherRun>& runs, const T* buffer, const std::vector<int64_t>& bases,
                   const std::vector<int64_t>& rows, const T* weights, const T* bias, int64_t first,
                   int64_t channels, T* y) {
  using V = Vector<T>;
  constexpr int64_t width = vectors * lanes<T>;
  const int64_t valid = std::min(width, channels - first);
  alignas(64) T start[width] = {};
  if (bias != nullptr) std::copy_n(bias + first, valid, start);
  const std::size_t count = bases.size();
  for (std::size_t p = 0; p < count; p += pixel_tile) {
    const T* pixels[pixel_tile];
    for (std::size_t i = 0; i < pixel_tile; ++i) pixels[i] = buffer + bases[std::min(p + i, count - 1)];
    V sums[pixel_tile][vectors];
    sum_tile<T, vectors>(pixels, runs, weights, reinterpret_cast<const V*>(start), sums);
    const std::size_t tile = std::min<std::size_t>(pixel_tile, count - p);
    for (std::size_t i = 0; i < tile; ++i) {
      T* out = y + rows[p + i] * channels + first;
      if (valid == width)
        std::memcpy(out, sums[i], sizeof sums[i]);  // a constant size needs no call
      else
        std::memcpy(out, sums[i], static_cast<std::size_t>(valid) * sizeof(T));
    }
  }
}

template <class T>
void multiply(const Gather& gather, const T* source, const T* weights, const T* bias, T* y) {
  const GatherBand band(gather, band_elements);
  const Panels<T> panels{gather.result_channels};
  parallel_chunks(band.count(), [&](int64_t piece) {
    const auto memory = scratch<T>(band.buffer_elements());
    T* buffer = elements_of<T>(memory);
    thread_local std::vector<int64_t> bases, rows;
    band.fill(piece, source, buffer, bases, rows);
    for (int64_t panel = 0; panel < panels.count(); ++panel) {
      const int64_t first = panels.first(panel);
      const T* packed = weights + first * gather.depth();
      const auto run = panels.vectors(panel) == 2 ? multiply_band<T, 2> : multiply_band<T, 1>;
      run(band.runs(), buffer, bases, rows, packed, bias, first, gather.result_channels, y);
    }
  });
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
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::rows; }

  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    if (p.batch == 0) return 0;
    if (pass == ConvPass::backward_weight) return direct_weight_workspace(p);
    const int64_t element = size_of(compute_dtype(p.dtype));
    const int64_t weights = ceil_div(p.out_channels, 16) * 16 * p.depth() * element;
    const GatherBand band(forward_gather(p), band_elements);
    return num_threads() * band.buffer_elements() * element + weights;
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
      const int64_t taps = p.taps();
      const auto packed = pack_weights<T>(gather, p.kernel, [=, &p](int64_t tap, int64_t c, int64_t k) {
        return weights[(k * taps + tap) * p.in_channels + c];
      });
      multiply(gather, x.data<T>(), elements_of<T>(packed), bias.defined() ? bias.data<T>() : nullptr,
               y.data<T>());
    });
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_type(p, [&]<class T>(Type<T>) {
      const T* weights = w.data<T>();
      const int64_t taps = p.taps();
      std::fill_n(dx.data<T>(), dx.numel(), T(0));
      for (const Gather& gather : backward_input_gathers(p)) {
        if (gather.taps() == 0) continue;
        if (is_depthwise(p)) {
          const auto by_tap = depthwise_weights(p, gather, weights);
          depthwise_gather<T>(gather, dy.data<T>(), elements_of<T>(by_tap), nullptr, dx.data<T>());
          continue;
        }
        const auto packed = pack_weights<T>(gather, p.kernel, [=, &p](int64_t tap, int64_t k, int64_t c) {
          return weights[(k * taps + tap) * p.in_channels + c];
        });
        multiply<T>(gather, dy.data<T>(), elements_of<T>(packed), nullptr, dx.data<T>());
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
