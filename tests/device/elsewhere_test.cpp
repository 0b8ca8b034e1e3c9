// What is computed on a GPU's default stream is computed on another GPU, and in streams of one's own, too: a
// launch or a call of a library that names neither goes to the first GPU's default stream.

#include "pleat/autograd/backward.h"
#include "pleat/core/device/cuda.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/image/image.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/sort.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::test;

namespace {

const Device gpu(DeviceType::cuda);

struct Case {
  const char* name;
  Tensors inputs;
  Function function;
};

/// A result and the gradients of its sum's square.
Tensors with_gradients(const Tensors& inputs, const std::function<Tensor(const Tensors&)>& f) {
  Tensors leaves;
  for (const Tensor& x : inputs) leaves.push_back(x.detach().set_requires_grad());
  const Tensor y = f(leaves);
  Tensors results = grad({y}, leaves, {y.detach()});
  results.push_back(y.detach());
  return results;
}

/// CPUs have other implementations.
std::string on_gpu(const Tensor& x, const char* implementation) {
  return x.device().is_cuda() ? implementation : "";
}

/// One of each way in which work reaches a GPU.
std::vector<Case> cases() {
  const Tensor image = normal({2, 4, 6, 5});
  const Tensor filter = normal({4, 4, 3, 3}, 2);
  const auto conv = [](const char* name) {
    return [name](const Tensors& t) {
      return with_gradients(t, [&](const Tensors& x) {
        return conv2d(x[0], x[1], {.padding = 1, .implementation = on_gpu(x[0], name)});
      });
    };
  };
  const auto norm = [](const char* name) {
    return [name](const Tensors& t) {
      return with_gradients(t, [&](const Tensors& x) {
        return batch_norm(x[0], {}, {}, {}, {}, {.training = true, .implementation = on_gpu(x[0], name)});
      });
    };
  };
  return {
      {"a launch", {normal({300})}, [](const Tensors& t) { return ops::cast(t[0], float32); }},
      {"blocks of threads", {normal({3, 5000})}, [](const Tensors& t) { return sum(t[0], {1}); }},
      {"bytes", {normal({7})}, [](const Tensors& t) { return zeros_like(t[0]); }},
      {"random numbers",
       {normal({1})},
       [](const Tensors& t) {
         Generator generator(3);
         return rand({100}, {.dtype = float64, .device = t[0].device()}, generator);
       }},
      {"cuBLAS",
       {normal({3, 4}), normal({4, 5}, 2)},
       [](const Tensors& t) {
         return with_gradients(t, [](const Tensors& x) { return matmul(x[0], x[1]); });
       }},
      {"CUB, one line",
       {normal({4, 3}), integers({100}, 0, 4), normal({100, 3}, 2)},
       [](const Tensors& t) { return index_add(t[0], 0, t[1], t[2]); }},
      {"CUB, lines", {normal({5, 40})}, [](const Tensors& t) { return sort(t[0]); }},
      {"CUB, places", {coins({60})}, [](const Tensors& t) { return nonzero(t[0]); }},
      {"unfold", {image, filter}, conv("unfold")},
      {"cuDNN", {image, filter}, conv("cudnn")},
      {"cuDNN's batch norm", {image}, norm("cudnn")},
      {"native batch norm", {image}, norm("native")},
      {"tables of a map",
       {image},
       [](const Tensors& t) {
         return with_gradients(t, [](const Tensors& x) {
           return interpolate(x[0], {.size = {9, 8}, .mode = Interpolation::linear});
         });
       }},
      {"an array of the host",
       {image},
       [](const Tensors& t) {
         const std::vector<ops::ImageShift> shifts = {{.down = 1, .right = -2}, {.mirror_columns = true}};
         return ops::shift_images(ops::cast(t[0], float32), shifts, true);
       }},
      {"an optimiser's table",
       {normal({50}), normal({50}, 2)},
       [](const Tensors& t) {
         Tensor parameter = ops::copy(t[0]);
         parameter.set_requires_grad().set_grad(t[1]);
         optim::Adam adam{{parameter}, {.lr = 0.1}};
         for (int i = 0; i < 3; ++i) adam.step();
         return parameter.detach();
       }},
  };
}

void check_same(const Tensors& got, const Tensors& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(relative_error(got[i], wanted[i]) < 1e-6);
  }
}

Tensors there(const Tensors& inputs, Device device) {
  Tensors moved;
  for (const Tensor& x : inputs) moved.push_back(ops::to_device(x, device));
  return moved;
}

}  // namespace

TEST_CASE("cuda: what one GPU computes another does, while the first is the current one", "[core][cuda]") {
  if (pleat_test::lacks_gpus(2)) return;
  const Device other(DeviceType::cuda, 1);
  for (const Case& one : cases()) {
    CAPTURE(one.name);
    const Tensors results = one.function(there(one.inputs, other)).tensors();
    for (const Tensor& result : results) CHECK(result.device() == other);
    check_same(results, one.function(one.inputs).tensors());
    CHECK(cuda::current_device() == gpu);
  }
}

TEST_CASE("cuda: what the default stream computes another does", "[core][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  // One after the other, without waiting for the first: what it has in its memory is not the second's.
  const std::vector<cuda::Stream> streams = {cuda::Stream({.device = gpu}), cuda::Stream({.device = gpu})};
  for (const Case& one : cases()) {
    CAPTURE(one.name);
    const Tensors wanted = one.function(one.inputs).tensors();
    std::vector<Tensors> results;
    for (const cuda::Stream& stream : streams) {
      const cuda::StreamGuard guard(stream);
      results.push_back(one.function(there(one.inputs, gpu)).tensors());
    }
    for (std::size_t s = streams.size(); s-- > 0;) {
      CAPTURE(s);
      const cuda::StreamGuard guard(streams[s]);
      check_same(results[s], wanted);
    }
  }
}
