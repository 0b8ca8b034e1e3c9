// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/device.h"
#include "pleat/ops/recurrent/options.h"

/// The part of a recurrent step that goes over elements, on the CPU and on a GPU. All matrices have a row for
/// each sequence and are dense: states [N, H], gates [N, G H], what is kept [N, K H] (ops/recurrent/cells.h).

namespace pleat::ops {

/// Which sequences have ended before a step.
struct StepLengths {
  const int64_t* lengths = nullptr;  ///< on the device; none: no sequence has
  int64_t step = 0;
};

template <class T>
struct ForwardStep {
  int64_t rows, width;  ///< N, H
  StepLengths time;
  const T* projected;  ///< of this step's inputs
  const T* product;    ///< W_hh h
  const T* bias;       ///< [G H]
  const T* h_before;
  const T* c_before;  ///< the c are none but for lstm
  T* h_after;
  T* c_after;
  T* kept;  ///< none: nothing is kept
};

template <class T>
struct BackwardStep {
  int64_t rows, width;
  StepLengths time;
  const T* kept;
  const T* h_before;
  const T* h_after;
  const T* c_before;
  const T* c_after;
  const T* dy;
  T* dh;  ///< of h_after; becomes that of h_before, but for what goes through the product
  T* dc;  ///< the same of c
  T* d_projected;
  T* d_product;  ///< may be d_projected where a cell's two gradients are the same
};

template <class T>
void forward_step(const char* op, Device device, RecurrentCell cell, const ForwardStep<T>& step);
template <class T>
void backward_step(const char* op, Device device, RecurrentCell cell, const BackwardStep<T>& step);

}  // namespace pleat::ops
