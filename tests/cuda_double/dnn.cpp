// cuDNN, as far as Pleat calls it: handles, batch normalisation, and graphs of one convolution with or
// without the addition of a bias (dnn_graph.cpp). NVIDIA's documentation of cuDNN says what each function
// does and refuses.
#include "dnn.h"

#include <cmath>
#include <vector>

#include "dnn_library.h"
#include "finding.h"
#include "graph.h"
#include "memory.h"
#include "queue.h"

using namespace cuda_double;

struct cudnnTensorStruct {
  Type type{};
  bool set = false;
  std::array<int64_t, 4> sizes{}, strides{};
};

namespace {

using Guard = std::lock_guard<Lock>;

LibraryHandles<cudnnContext>& handles() { return LibraryHandles<cudnnContext>::instance(); }

std::size_t reach(const cudnnTensorStruct& t) {
  int64_t last = 0;
  for (std::size_t d = 0; d < 4; ++d) {
    if (t.sizes[d] == 0) return 0;
    last += (t.sizes[d] - 1) * t.strides[d];
  }
  return static_cast<std::size_t>(last + 1) * size_of(t.type);
}

double number(Type type, const void* memory) { return read_number(type, memory, 0); }

/// One value of each channel, in float32, or float64 beside float64.
struct Channels {
  Type type;
  const void* memory;
  double operator[](int64_t c) const { return read_number(type, memory, c); }
};

struct Elements {
  cudnnTensorStruct of;
  template <class F>
  void for_each(int64_t c, const F& f) const {
    for (int64_t n = 0; n < of.sizes[0]; ++n)
      for (int64_t h = 0; h < of.sizes[2]; ++h)
        for (int64_t w = 0; w < of.sizes[3]; ++w)
          f(n * of.strides[0] + c * of.strides[1] + h * of.strides[2] + w * of.strides[3]);
  }
  int64_t count() const { return of.sizes[0] * of.sizes[2] * of.sizes[3]; }
};

void blend(Type type, void* memory, int64_t i, double alpha, double beta, double value) {
  write_number(type, memory, i, alpha * value + (beta != 0 ? beta * read_number(type, memory, i) : 0));
}

/// What is wrong with a call, as cuDNN sees it; CUDNN_STATUS_SUCCESS otherwise.
cudnnStatus_t check(cudnnBatchNormMode_t mode, const cudnnTensorStruct* x, const cudnnTensorStruct* channels,
                    double eps, std::initializer_list<const void*> needed) {
  for (const void* pointer : needed)
    if (pointer == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (x == nullptr || channels == nullptr || !x->set || !channels->set) return CUDNN_STATUS_BAD_PARAM;
  if (eps < CUDNN_BN_MIN_EPSILON) return CUDNN_STATUS_BAD_PARAM;
  if (mode == CUDNN_BATCHNORM_PER_ACTIVATION) return CUDNN_STATUS_NOT_SUPPORTED;
  if (channels->type != (x->type == Type::f64 ? Type::f64 : Type::f32)) return CUDNN_STATUS_BAD_PARAM;
  const std::array<int64_t, 4> wanted = {1, x->sizes[1], 1, 1};
  return channels->sizes == wanted ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

/// `pointers` lie in memory of the handle's device, each as long as its descriptor says.
void require(const cudnnContext& handle, const char* what,
             std::initializer_list<std::pair<const void*, const cudnnTensorStruct*>> pointers) {
  for (const auto& [memory, tensor] : pointers)
    if (memory != nullptr) require_on_device(what, memory, reach(*tensor), handle.device);
}

}  // namespace

namespace cuda_double {

bool type_of(cudnnDataType_t given, Type& type) {
  switch (given) {
    case CUDNN_DATA_DOUBLE:
      type = Type::f64;
      return true;
    case CUDNN_DATA_FLOAT:
      type = Type::f32;
      return true;
    case CUDNN_DATA_HALF:
      type = Type::f16;
      return true;
    case CUDNN_DATA_BFLOAT16:
      type = Type::bf16;
      return true;
    default:
      return false;
  }
}

cudnnContext& handle_of(cudnnHandle_t handle, const char* what) { return handles().get(handle, what); }

int64_t dnn_handles() { return handles().count(); }

}  // namespace cuda_double

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    default:
      return "another status of cuDNN";
  }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const Guard guard(lock());
  if (device_error(current_device()) != cudaSuccess) return CUDNN_STATUS_NOT_INITIALIZED;
  if (forbidden_while_capturing() != cudaSuccess) return CUDNN_STATUS_EXECUTION_FAILED;
  if (fault(&Faults::dnn_handle)) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = handles().make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const Guard guard(lock());
  return handles().destroy(handle) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  const Guard guard(lock());
  if (fault(&Faults::dnn_set)) return CUDNN_STATUS_NOT_INITIALIZED;
  handle_of(handle, "cudnnSetStream").stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  *descriptor = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t t, cudnnDataType_t type, int n, int c,
                                           int h, int w, int n_stride, int c_stride, int h_stride,
                                           int w_stride) {
  if (t == nullptr || !type_of(type, t->type) || n < 1 || c < 1 || h < 1 || w < 1 || n_stride < 0 ||
      c_stride < 0 || h_stride < 0 || w_stride < 0)
    return CUDNN_STATUS_BAD_PARAM;
  const cudnnStatus_t status = library_takes(type, {n, c, h, w}, {n_stride, c_stride, h_stride, w_stride});
  if (status != CUDNN_STATUS_SUCCESS) return status;
  t->sizes = {n, c, h, w};
  t->strides = {n_stride, c_stride, h_stride, w_stride};
  t->set = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t channels, const cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t mode) {
  if (channels == nullptr || x == nullptr || !x->set || mode == CUDNN_BATCHNORM_PER_ACTIVATION)
    return CUDNN_STATUS_BAD_PARAM;
  *channels = {
      x->type == Type::f64 ? Type::f64 : Type::f32, true, {1, x->sizes[1], 1, 1}, {x->sizes[1], 1, 1, 1}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_of, const void* x, const cudnnTensorDescriptor_t y_of, void* y,
    const cudnnTensorDescriptor_t channels, const void* scale, const void* bias, double, void* running_mean,
    void* running_variance, double eps, void* saved_mean, void* saved_rstd) {
  const Guard guard(lock());
  const char* const what = "cudnnBatchNormalizationForwardTraining";
  const cudnnContext& own = handle_of(handle, what);
  if (device_error(own.device) != cudaSuccess || fault(&Faults::dnn)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (const auto status = check(mode, x_of, channels, eps, {alpha, beta, x, y, scale, bias});
      status != CUDNN_STATUS_SUCCESS)
    return status;
  if (y_of == nullptr || y_of->sizes != x_of->sizes || y_of->type != x_of->type)
    return CUDNN_STATUS_BAD_PARAM;
  if ((saved_mean == nullptr) != (saved_rstd == nullptr)) return CUDNN_STATUS_BAD_PARAM;
  if (running_mean != nullptr || running_variance != nullptr)
    finding(std::string(what) + ": Pleat keeps running statistics itself");
  require(own, what,
          {{x, x_of},
           {y, y_of},
           {scale, channels},
           {bias, channels},
           {saved_mean, channels},
           {saved_rstd, channels}});
  ++counted().calls_of_libraries;
  const Type type = channels->type;
  const double al = number(type, alpha), be = number(type, beta);
  const Elements in{*x_of}, out{*y_of};
  enqueue(stream_of(own.stream),
          {.what = what, .run = [=] {
             const Channels weight{type, scale}, shift{type, bias};
             for (int64_t c = 0; c < in.of.sizes[1]; ++c) {
               double sum = 0, squares = 0;
               in.for_each(c, [&](int64_t i) { sum += read_number(in.of.type, x, i); });
               const auto count = static_cast<double>(in.count());
               const double mean = sum / count;
               in.for_each(c, [&](int64_t i) {
                 const double apart = read_number(in.of.type, x, i) - mean;
                 squares += apart * apart;
               });
               const double variance = squares / count;
               const double rstd = 1 / std::sqrt(variance + eps);
               std::vector<double> values;
               in.for_each(c, [&](int64_t i) {
                 values.push_back((read_number(in.of.type, x, i) - mean) * rstd * weight[c] + shift[c]);
               });
               std::size_t next = 0;
               out.for_each(c, [&](int64_t i) { blend(out.of.type, y, i, al, be, values[next++]); });
               if (saved_mean != nullptr) write_number(type, saved_mean, c, mean);
               if (saved_rstd != nullptr) write_number(type, saved_rstd, c, rstd);
             }
           }});
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t mode,
                                                      const void* alpha, const void* beta,
                                                      const cudnnTensorDescriptor_t x_of, const void* x,
                                                      const cudnnTensorDescriptor_t y_of, void* y,
                                                      const cudnnTensorDescriptor_t channels,
                                                      const void* scale, const void* bias, const void* mean,
                                                      const void* variance, double eps) {
  const Guard guard(lock());
  const char* const what = "cudnnBatchNormalizationForwardInference";
  const cudnnContext& own = handle_of(handle, what);
  if (device_error(own.device) != cudaSuccess || fault(&Faults::dnn)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (const auto status = check(mode, x_of, channels, eps, {alpha, beta, x, y, scale, bias, mean, variance});
      status != CUDNN_STATUS_SUCCESS)
    return status;
  if (y_of == nullptr || y_of->sizes != x_of->sizes || y_of->type != x_of->type)
    return CUDNN_STATUS_BAD_PARAM;
  require(
      own, what,
      {{x, x_of}, {y, y_of}, {scale, channels}, {bias, channels}, {mean, channels}, {variance, channels}});
  ++counted().calls_of_libraries;
  const Type type = channels->type;
  const double al = number(type, alpha), be = number(type, beta);
  const Elements in{*x_of}, out{*y_of};
  enqueue(
      stream_of(own.stream),
      {.what = what, .run = [=] {
         const Channels weight{type, scale}, shift{type, bias}, middle{type, mean}, spread{type, variance};
         for (int64_t c = 0; c < in.of.sizes[1]; ++c) {
           std::vector<double> values;
           in.for_each(c, [&](int64_t i) {
             values.push_back((read_number(in.of.type, x, i) - middle[c]) / std::sqrt(spread[c] + eps) *
                                  weight[c] +
                              shift[c]);
           });
           std::size_t next = 0;
           out.for_each(c, [&](int64_t i) { blend(out.of.type, y, i, al, be, values[next++]); });
         }
       }});
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha_data, const void* beta_data,
    const void* alpha_param, const void* beta_param, const cudnnTensorDescriptor_t x_of, const void* x,
    const cudnnTensorDescriptor_t dy_of, const void* dy, const cudnnTensorDescriptor_t dx_of, void* dx,
    const cudnnTensorDescriptor_t channels, const void* scale, void* dscale, void* dbias, double eps,
    const void* saved_mean, const void* saved_rstd) {
  const Guard guard(lock());
  const char* const what = "cudnnBatchNormalizationBackward";
  const cudnnContext& own = handle_of(handle, what);
  if (device_error(own.device) != cudaSuccess || fault(&Faults::dnn)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (const auto status =
          check(mode, x_of, channels, eps,
                {alpha_data, beta_data, alpha_param, beta_param, x, dy, dx, scale, dscale, dbias});
      status != CUDNN_STATUS_SUCCESS)
    return status;
  for (const cudnnTensorStruct* other : {dy_of, dx_of})
    if (other == nullptr || other->sizes != x_of->sizes || other->type != x_of->type)
      return CUDNN_STATUS_BAD_PARAM;
  if ((saved_mean == nullptr) != (saved_rstd == nullptr)) return CUDNN_STATUS_BAD_PARAM;
  require(own, what,
          {{x, x_of},
           {dy, dy_of},
           {dx, dx_of},
           {scale, channels},
           {dscale, channels},
           {dbias, channels},
           {saved_mean, channels},
           {saved_rstd, channels}});
  if (saved_mean == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  ++counted().calls_of_libraries;
  const Type type = channels->type;
  const double al = number(type, alpha_data), be = number(type, beta_data);
  const double alp = number(type, alpha_param), bep = number(type, beta_param);
  const Elements in{*x_of}, gradient{*dy_of}, out{*dx_of};
  enqueue(stream_of(own.stream),
          {.what = what, .run = [=] {
             const Channels weight{type, scale}, mean{type, saved_mean}, rstd{type, saved_rstd};
             for (int64_t c = 0; c < in.of.sizes[1]; ++c) {
               std::vector<double> normal, dys;
               in.for_each(c, [&](int64_t i) {
                 normal.push_back((read_number(in.of.type, x, i) - mean[c]) * rstd[c]);
               });
               gradient.for_each(c, [&](int64_t i) { dys.push_back(read_number(gradient.of.type, dy, i)); });
               double sum = 0, product = 0;
               for (std::size_t i = 0; i < dys.size(); ++i) {
                 sum += dys[i];
                 product += dys[i] * normal[i];
               }
               const auto count = static_cast<double>(in.count());
               std::size_t next = 0;
               out.for_each(c, [&](int64_t i) {
                 const double value =
                     weight[c] * rstd[c] * (dys[next] - sum / count - normal[next] * product / count);
                 ++next;
                 blend(out.of.type, dx, i, al, be, value);
               });
               blend(type, dscale, c, alp, bep, product);
               blend(type, dbias, c, alp, bep, sum);
             }
           }});
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
