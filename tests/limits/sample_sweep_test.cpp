#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/multinomial.h"
#include "pleat/ops/index/quantile.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/sample/boxes.h"
#include "pleat/ops/sample/deform_conv.h"
#include "pleat/ops/sample/roi_align.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/limits/sweep.h"

using namespace pleat;
using namespace pleat_test;

TEST_CASE("regions and moved taps take integers from all over int64", "[limits]") {
  sweep("roi_align", {2, 2, 1}, [](const Integers& i) {
    const Tensor boxes = tensor({{0.0, 1.0, 1.0, 3.0, 2.0}, {0.0, 0.0, 0.0, 1.0, 3.0}});
    return roi_align(ones({1, 2, 4, 5}).set_requires_grad(), boxes,
                     {.output_size = {i[0], i[1]}, .sampling_ratio = i[2]});
  });
  sweep("roi_align, boxes", {0, 1, 1, 3, 2}, [](const Integers& i) {
    const std::vector<double> box(i.begin(), i.end());
    return roi_align(ones({1, 2, 4, 5}), from_vector(box, {1, 5}), {.output_size = 2});
  });
  sweep("batched_nms, classes", {0, 1}, [](const Integers& i) {
    return batched_nms(tensor({{0.0, 0.0, 1.0, 1.0}, {0.0, 0.0, 1.0, 1.0}}), ones({2}), tensor({i[0], i[1]}),
                       0.5);
  });
  sweep("deform_conv2d", {1, 0, 1}, [](const Integers& i) {
    return deform_conv2d(ones({1, 2, 3, 4}).set_requires_grad(), zeros({1, 8, 2, 3}), ones({3, 2, 2, 2}), {},
                         {.stride = i[0], .padding = i[1], .dilation = i[2]});
  });
}

TEST_CASE("searches, counts and quantiles take integers from all over int64", "[limits]") {
  sweep("bincount", {1, 4}, [](const Integers& i) {
    return bincount(tensor({i[0], int64_t{0}}), {.minlength = i[1]});
  });
  sweep("multinomial", {2}, [](const Integers& i) { return multinomial(ones({3}), i[0]); });
  sweep("multinomial with replacement", {2},
        [](const Integers& i) { return multinomial(ones({3}), i[0], {.replacement = true}); });
  sweep("searchsorted", {1, 4}, [](const Integers& i) {
    return searchsorted(tensor({i[0], i[1]}), tensor({i[1], i[0], int64_t{3}}), {});
  });
  for (const int64_t rank : {1, 2, 4}) {
    sweep_tensors("count_nonzero", rank, {0, -1}, [](const Tensor& x, const Integers& i) {
      return count_nonzero(x, {i[0], i[1]});
    });
    sweep_tensors("median", rank, {0},
                  [](const Tensor& x, const Integers& i) { return median(x, {.dim = i[0]}); });
    sweep_tensors("quantile", rank, {0},
                  [](const Tensor& x, const Integers& i) { return quantile(x, 0.3, {.dim = i[0]}); });
    sweep_tensors("diff", rank, {1, 0},
                  [](const Tensor& x, const Integers& i) { return diff(x, i[0], i[1]); });
  }
  for (const DType dtype : {float32, uint8, int32, int64, float16, boolean}) {
    const Tensor x = ones({3}, {.dtype = dtype});
    sweep("addcmul", {2}, [&](const Integers& i) { return addcmul(x, x, x, i[0]); });
    sweep("addcdiv", {2}, [&](const Integers& i) { return addcdiv(x, x, x, i[0]); });
  }
}
