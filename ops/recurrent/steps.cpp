// Host and device.
#include "pleat/ops/recurrent/steps.h"

#include <algorithm>

#include "pleat/core/base/simd.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/ops/recurrent/cells.h"

namespace pleat::ops {
namespace {

PLEAT_HOST_DEVICE bool has_ended(const StepLengths& time, int64_t row) {
  return time.lengths != nullptr && time.step >= time.lengths[row];
}

/// Calls functor.elements(row, first, last) with the parts of rows of `width` elements in [first, last).
template <class Functor>
void run_rows(const Functor& functor, int64_t width, int64_t first, int64_t last) {
  while (first < last) {
    const int64_t row = first / width;
    const int64_t end = std::min(last, (row + 1) * width);
    functor.elements(row, first - row * width, end - row * width);
    first = end;
  }
}

template <class Cell, class T>
struct Forward {
  ForwardStep<T> s;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / s.width;
    elements(row, i - row * s.width, i - row * s.width + 1);
  }
  void run(int64_t first, int64_t last) const { run_rows(*this, s.width, first, last); }

  PLEAT_HOST_DEVICE void elements(int64_t row, int64_t first, int64_t last) const {
    const int64_t width = s.width;
    const T* const h = s.h_before + row * width;
    const T* const c = Cell::has_cell ? s.c_before + row * width : nullptr;
    T* const h_after = s.h_after + row * width;
    T* const c_after = Cell::has_cell ? s.c_after + row * width : nullptr;
    if (has_ended(s.time, row)) {
      for (int64_t j = first; j < last; ++j) {
        h_after[j] = h[j];
        if constexpr (Cell::has_cell) c_after[j] = c[j];
      }
      return;
    }
    const T* const projected = s.projected + row * Cell::gates * width;
    const T* const product = s.product + row * Cell::gates * width;
    const T* const bias = s.bias;
    T* const kept = s.kept == nullptr ? nullptr : s.kept + row * Cell::kept * width;
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t j = first; j < last; ++j) {
      T x[Cell::gates], u[Cell::gates];
      for (int64_t k = 0; k < Cell::gates; ++k) {
        x[k] = projected[k * width + j];
        u[k] = product[k * width + j] + bias[k * width + j];
      }
      const CellStep<T> after = Cell::step(x, u, h[j], Cell::has_cell ? c[j] : T(0));
      h_after[j] = after.h;
      if constexpr (Cell::has_cell) c_after[j] = after.c;
      if (kept != nullptr)
        for (int64_t k = 0; k < Cell::kept; ++k) kept[k * width + j] = after.kept[k];
    }
  }
};

template <class Cell, class T>
struct Backward {
  BackwardStep<T> s;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / s.width;
    elements(row, i - row * s.width, i - row * s.width + 1);
  }
  void run(int64_t first, int64_t last) const { run_rows(*this, s.width, first, last); }

  PLEAT_HOST_DEVICE void elements(int64_t row, int64_t first, int64_t last) const {
    const int64_t width = s.width;
    T* const d_projected = s.d_projected + row * Cell::gates * width;
    T* const d_product = s.d_product + row * Cell::gates * width;
    if (has_ended(s.time, row)) {  // the states went through
      for (int64_t j = first; j < last; ++j)
        for (int64_t k = 0; k < Cell::gates; ++k) d_projected[k * width + j] = d_product[k * width + j] = 0;
      return;
    }
    const T* const kept = s.kept + row * Cell::kept * width;
    const T* const h_before = s.h_before + row * width;
    const T* const h_after = s.h_after + row * width;
    const T* const c_before = Cell::has_cell ? s.c_before + row * width : nullptr;
    const T* const c_after = Cell::has_cell ? s.c_after + row * width : nullptr;
    const T* const dy = s.dy + row * width;
    T* const dh = s.dh + row * width;
    T* const dc = Cell::has_cell ? s.dc + row * width : nullptr;
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t j = first; j < last; ++j) {
      T k[4];
      for (int64_t i = 0; i < Cell::kept; ++i) k[i] = kept[i * width + j];
      const CellGradients<T> d =
          Cell::backward(dh[j] + dy[j], Cell::has_cell ? dc[j] : T(0), k, h_before[j], h_after[j],
                         Cell::has_cell ? c_before[j] : T(0), Cell::has_cell ? c_after[j] : T(0));
      for (int64_t i = 0; i < Cell::gates; ++i) {
        d_projected[i * width + j] = d.projected[i];
        d_product[i * width + j] = i + 1 < Cell::gates ? d.projected[i] : d.product_last;
      }
      dh[j] = d.h;
      if constexpr (Cell::has_cell) dc[j] = d.c;
    }
  }
};

/// Steps of fewer elements run in the caller: some 20 operations each.
constexpr int64_t grain = 1024;

}  // namespace

template <class T>
void forward_step(const char* op, Device device, RecurrentCell cell, const ForwardStep<T>& step) {
  with_cell(cell, [&]<class Cell>(Cell) {
    for_each_index(op, device, step.rows * step.width, Forward<Cell, T>{step}, grain);
  });
}
template <class T>
void backward_step(const char* op, Device device, RecurrentCell cell, const BackwardStep<T>& step) {
  with_cell(cell, [&]<class Cell>(Cell) {
    for_each_index(op, device, step.rows * step.width, Backward<Cell, T>{step}, grain);
  });
}

template void forward_step(const char*, Device, RecurrentCell, const ForwardStep<float>&);
template void forward_step(const char*, Device, RecurrentCell, const ForwardStep<double>&);
template void backward_step(const char*, Device, RecurrentCell, const BackwardStep<float>&);
template void backward_step(const char*, Device, RecurrentCell, const BackwardStep<double>&);

}  // namespace pleat::ops
