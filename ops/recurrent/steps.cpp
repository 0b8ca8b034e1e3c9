// Host and device.
#include <algorithm>

#include "pleat/core/base/simd.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/recurrent/cells.h"
#include "pleat/ops/recurrent/kernels.h"

namespace pleat::ops {
namespace {

// All matrices have a row for each sequence: states [N, H], gates [N, G H], what is kept [N, K H] (cells.h).

/// The sequences of a step.
struct Rows {
  int64_t width;           ///< H
  const int64_t* lengths;  ///< none: no sequence has ended
  int64_t step;

  PLEAT_HOST_DEVICE bool has_ended(int64_t row) const { return lengths != nullptr && step >= lengths[row]; }
};

template <class Cell, class T>
struct Forward {
  Rows rows;
  const T *h_before, *c_before;  ///< the c are none but for lstm
  T *h_after, *c_after, *kept;   ///< kept: none where nothing is
  const T *projected, *product, *bias;

  /// Part [first, last) of a row.
  PLEAT_HOST_DEVICE void operator()(int64_t row, int64_t first, int64_t last) const {
    const int64_t width = rows.width, state = row * width;
    if (rows.has_ended(row)) {
      for (int64_t j = first; j < last; ++j) {
        h_after[state + j] = h_before[state + j];
        if constexpr (Cell::has_cell) c_after[state + j] = c_before[state + j];
      }
      return;
    }
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t j = first; j < last; ++j) {
      T x[Cell::gates], u[Cell::gates];
      for (int64_t k = 0; k < Cell::gates; ++k) {
        x[k] = projected[state * Cell::gates + k * width + j];
        u[k] = product[state * Cell::gates + k * width + j] + bias[k * width + j];
      }
      const CellStep<T> after =
          Cell::step(x, u, h_before[state + j], Cell::has_cell ? c_before[state + j] : T(0));
      h_after[state + j] = after.h;
      if constexpr (Cell::has_cell) c_after[state + j] = after.c;
      if (kept != nullptr)
        for (int64_t k = 0; k < Cell::kept; ++k) kept[state * Cell::kept + k * width + j] = after.kept[k];
    }
  }
};

template <class Cell, class T>
struct Backward {
  Rows rows;
  const T *h_before, *c_before, *h_after, *c_after, *kept, *dy;
  T *dh, *dc, *d_projected, *d_product;

  PLEAT_HOST_DEVICE void operator()(int64_t row, int64_t first, int64_t last) const {
    const int64_t width = rows.width, state = row * width, gate = state * Cell::gates;
    if (rows.has_ended(row)) {  // the states went through
      for (int64_t k = gate; k < gate + Cell::gates * width; k += width)
        for (int64_t j = first; j < last; ++j) d_projected[k + j] = d_product[k + j] = 0;
      return;
    }
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t j = first; j < last; ++j) {
      T k[4];
      for (int64_t i = 0; i < Cell::kept; ++i) k[i] = kept[state * Cell::kept + i * width + j];
      const CellGradients<T> d =
          Cell::backward(dh[state + j] + dy[state + j], Cell::has_cell ? dc[state + j] : T(0), k,
                         h_before[state + j], h_after[state + j], Cell::has_cell ? c_before[state + j] : T(0),
                         Cell::has_cell ? c_after[state + j] : T(0));
      for (int64_t i = 0; i < Cell::gates; ++i) {
        d_projected[gate + i * width + j] = d.projected[i];
        d_product[gate + i * width + j] = i + 1 < Cell::gates ? d.projected[i] : d.product_last;
      }
      dh[state + j] = d.h;
      if constexpr (Cell::has_cell) dc[state + j] = d.c;
    }
  }
};

/// All elements of a step, for a GPU.
template <class Step>
struct Elements {
  Step part;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / part.rows.width, j = i - row * part.rows.width;
    part(row, j, j + 1);
  }
};

/// The elements of [steps, ...] from step t on.
template <class T>
T* at(const Tensor& x, int64_t t) {
  return x.defined() && x.numel() > 0 ? x.data<T>() + t * (x.numel() / x.size(0)) : nullptr;
}

/// Runs the step that make(cell, type) returns.
template <class Make>
void run(const RecurrentProblem& p, Device device, const RecurrentPart& part, const Make& make) {
  dispatch_floating(p.op, p.compute, [&](auto type) {
    with_cell(p.cell, [&](auto cell) {
      const auto step = make(cell, type);
      if (device.is_cuda())
        for_each_index(p.op, device, p.batch * p.width, Elements<decltype(make(cell, type))>{step});
      else
        for (int64_t row = part.row; row < part.row + part.rows; ++row)
          step(row, part.first, part.first + part.units);
    });
  });
}

}  // namespace

void forward_elements(const RecurrentProblem& p, int64_t t, const RecurrentPart& part, const int64_t* lengths,
                      const Tensor& projected, const Tensor& product, const Tensor& bias,
                      const RecurrentStates& states) {
  run(p, bias.device(), part, [&]<class Cell, class T>(Cell, Type<T>) {
    return Forward<Cell, T>{{p.width, lengths, t},
                            at<T>(states.h, p.before(t)),
                            at<T>(states.c, p.before(t)),
                            at<T>(states.h, p.after(t)),
                            at<T>(states.c, p.after(t)),
                            at<T>(states.kept, t),
                            at<T>(projected, t),
                            product.data<T>(),
                            bias.data<T>()};
  });
}

void backward_elements(const RecurrentProblem& p, int64_t t, const RecurrentPart& part,
                       const int64_t* lengths, const RecurrentStates& states, const Tensor& dy,
                       const Tensor& dh, const Tensor& dc, const Tensor& d_projected,
                       const Tensor& d_product) {
  run(p, dh.device(), part, [&]<class Cell, class T>(Cell, Type<T>) {
    return Backward<Cell, T>{{p.width, lengths, t},
                             at<T>(states.h, p.before(t)),
                             at<T>(states.c, p.before(t)),
                             at<T>(states.h, p.after(t)),
                             at<T>(states.c, p.after(t)),
                             at<T>(states.kept, t),
                             at<T>(dy, t),
                             dh.data<T>(),
                             at<T>(dc, 0),
                             at<T>(d_projected, t),
                             at<T>(d_product, t)};
  });
}

}  // namespace pleat::ops
