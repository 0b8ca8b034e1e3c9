#include "pleat/ops/conv/direct_weight.h"

#include "pleat/core/format.h"
#include "pleat/ops/conv/depthwise.h"
#include "pleat/ops/conv/gather.h"
#include "pleat/ops/conv/register_tile.h"

namespace pleat::ops {
namespace {

/// sums[depth row][channel of the panel] += x dy over all pixels, for `height` consecutive rows of a run.
template <class T, int height, int vectors>
void sum_outer(const T* x, const std::vector<int64_t>& bases, const T* dy, const std::vector<int64_t>& rows,
               int64_t channels, T* sums, int64_t leading) {
  using V = Vector<T>;
  V total[height][vectors] = {};
  for (std::size_t p = 0; p < bases.size(); ++p) {
    const T* pixel = x + bases[p];
    const T* gradient = dy + rows[p] * channels;
    V g[vectors];
    for (int v = 0; v < vectors; ++v) g[v] = *reinterpret_cast<const V*>(gradient + v * lanes<T>);
#pragma GCC unroll 8
    for (int i = 0; i < height; ++i) {
      const V element = pixel[i] - V{};
      for (int v = 0; v < vectors; ++v) total[i][v] += element * g[v];
    }
  }
  for (int i = 0; i < height; ++i)
    for (int v = 0; v < vectors; ++v) *reinterpret_cast<V*>(sums + i * leading + v * lanes<T>) += total[i][v];
}

template <class T, int vectors>
void sum_outer_runs(const std::vector<GatherRun>& runs, const T* buffer, const std::vector<int64_t>& bases,
                    const T* dy, const std::vector<int64_t>& rows, int64_t channels, T* sums,
                    int64_t leading) {
  for (const GatherRun& run : runs) {
    const T* x = buffer + run.offset;
    int64_t left = run.length;
    const auto advance = [&](int64_t by) {
      x += by;
      sums += by * leading;
      left -= by;
    };
    while (left >= 8) {
      sum_outer<T, 8, vectors>(x, bases, dy, rows, channels, sums, leading);
      advance(8);
    }
    while (left >= 3) {
      sum_outer<T, 3, vectors>(x, bases, dy, rows, channels, sums, leading);
      advance(3);
    }
    while (left >= 1) {
      sum_outer<T, 1, vectors>(x, bases, dy, rows, channels, sums, leading);
      advance(1);
    }
  }
}

/// dw [K, taps, C] from sums [taps * C, padded K]. Forward gathers have their taps in the weight's order.
template <class T>
void write_weight_gradient(const T* sums, int64_t depth, int64_t channels, int64_t leading, T* dw) {
  parallel_for(0, channels, 8, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      for (int64_t i = 0; i < depth; ++i) dw[k * depth + i] = sums[i * leading + k];
  });
}

template <class T>
void multiply_transposed(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const Gather gather = forward_gather(p);
  const GatherBand band(gather, band_elements);
  const Panels<T> panels{p.out_channels};
  const int64_t leading = panels.padded();
  const bool whole = leading == p.out_channels;
  const int64_t size = gather.depth() * leading;
  const int64_t chunks = chunks_for(band.count(), size * static_cast<int64_t>(sizeof(T)));
  const auto partials = scratch<T>((chunks + 1) * size);
  parallel_chunks(chunks, [&](int64_t chunk) {
    const auto memory = scratch<T>(band.buffer_elements());
    T* buffer = elements_of<T>(memory);
    T* sums = elements_of<T>(partials) + chunk * size;
    std::fill_n(sums, size, T(0));
    std::vector<int64_t> bases, rows;
    std::vector<T> padded;
    for (int64_t piece = band.count() * chunk / chunks; piece < band.count() * (chunk + 1) / chunks;
         ++piece) {
      band.fill(piece, x, buffer, bases, rows);
      const T* gradients = dy;
      if (!whole) {  // vectors must not read beyond a row of dy
        padded.assign(rows.size() * static_cast<std::size_t>(leading), T(0));
        for (std::size_t i = 0; i < rows.size(); ++i) {
          std::copy_n(dy + rows[i] * p.out_channels, p.out_channels,
                      padded.data() + static_cast<int64_t>(i) * leading);
          rows[i] = static_cast<int64_t>(i);
        }
        gradients = padded.data();
      }
      for (int64_t panel = 0; panel < panels.count(); ++panel) {
        const int64_t first = panels.first(panel);
        const auto run = panels.vectors(panel) == 2 ? sum_outer_runs<T, 2> : sum_outer_runs<T, 1>;
        run(band.runs(), buffer, bases, gradients + first, rows, leading, sums + first, leading);
      }
    }
  });
  T* total = elements_of<T>(partials) + chunks * size;
  sum_partials(elements_of<T>(partials), chunks, size, total);
  write_weight_gradient(total, gather.depth(), p.out_channels, leading, dw);
}

template <class T>
void depthwise_backward_weight(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const auto sums = scratch<T>(p.taps() * p.out_channels);
  depthwise_weight_gradient(forward_gather(p), dy, x, elements_of<T>(sums));
  write_weight_gradient(elements_of<T>(sums), p.taps(), p.out_channels, p.out_channels, dw);
}

}  // namespace

template <class T>
void direct_backward_weight(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const auto compute = is_depthwise(p) ? depthwise_backward_weight<T> : multiply_transposed<T>;
  compute(p, dy, x, dw);
}

template void direct_backward_weight(const ConvProblem&, const float*, const float*, float*);
template void direct_backward_weight(const ConvProblem&, const double*, const double*, double*);

int64_t direct_weight_workspace(const ConvProblem& p) {
  const int64_t element = size_of(compute_dtype(p.dtype));
  const int64_t weights = ceil_div(p.out_channels, 16) * 16 * p.depth() * element;
  const GatherBand band(forward_gather(p), band_elements);
  return num_threads() * band.buffer_elements() * element + (chunks_for(band.count(), weights) + 1) * weights;
}

}  // namespace pleat::ops
