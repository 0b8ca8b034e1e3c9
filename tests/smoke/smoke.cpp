// Small checks of a device, each for a process of its own: smoke CHECK [cuda|cpu]
//   copy         to the device, on it, and back
//   elementwise  kernels over elements, broadcasting and casts
//   reduction    sums, maxima and softmax
//   cublas       matrix products
//   unfold       convolution by unfold and products: forward and both backward passes
//   cudnn        the same by cuDNN
// Each compares with numbers that a few lines here compute. One line says the outcome: "copy: well", or what
// differs first. Steps are named on standard error as they begin, so that it is known where a process died or
// hung. On the CPU its own matrix products and convolutions stand in for cuBLAS and cuDNN. Exit status: 0
// well, 1 something differs or failed, 2 wrong options, 77 this build lacks what is to be checked.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <pleat/pleat.h>

using namespace pleat;

namespace {

using Numbers = std::vector<double>;

/// What this build cannot check.
class LeftOut : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::string step = "begin";

void begin(const std::string& what) {
  step = what;
  std::fprintf(stderr, "  %s\n", what.c_str());
}

/// Throws at the first element that is further off than `tolerance` times the largest expected magnitude.
void expect(const Tensor& got, const Numbers& expected, double tolerance = 0) {
  // The host converts: a kernel that casts is not what is checked here.
  const Numbers values = got.to("cpu").to_vector<double>();
  if (values.size() != expected.size())
    throw std::runtime_error("expected " + std::to_string(expected.size()) + " elements, got " +
                             std::to_string(values.size()));
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(std::abs(values[i] - expected[i]) <= tolerance * largest)) {
      char text[128];
      std::snprintf(text, sizeof text, "element %zu of %zu: expected %.9g, got %.9g", i, values.size(),
                    expected[i], values[i]);
      throw std::runtime_error(text);
    }
}

/// Eighths between -1 and 1, which every floating type holds.
Numbers numbers(int64_t count, int64_t seed = 0) {
  Numbers values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>((i * 37 + seed) % 17 - 8) / 8);
  return values;
}

Tensor tensor_of(const Numbers& values, const Shape& shape, DType dtype = float32) {
  return from_vector(values, shape).to(dtype);
}

template <class F>
Numbers map(Numbers values, F function) {
  for (double& value : values) value = function(value);
  return values;
}

// --- the checks

void copy(Device device) {
  const int64_t rows = 37, columns = 61;
  const Numbers values = numbers(rows * columns);
  Numbers turned, part;
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) turned.push_back(values[r * columns + c]);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 3; c < 50; c += 2) part.push_back(values[r * columns + c]);

  const Tensor host = tensor_of(values, {rows, columns});
  begin("to the device and back");
  const Tensor x = host.to(device);
  expect(x, values);
  begin("zeros");
  expect(zeros({1000}, device), Numbers(1000, 0));
  begin("a copy on the device");
  expect(x.clone(), values);
  begin("a transposed copy on the device");
  expect(transpose(x, 0, 1).contiguous(), turned);
  begin("every second column");
  expect(slice(x, 1, 3, 50, 2).clone(), part);
  begin("into a part of a tensor");
  const Tensor wide = zeros({rows, 100}, device);
  copy_(slice(wide, 1, 3, 3 + columns), x);
  expect(slice(wide, 1, 3, 3 + columns), values);
  begin("int64");
  expect(from_vector(std::vector<int64_t>{1, -2, int64_t{1} << 40}).to(device), {1, -2, std::ldexp(1.0, 40)});
}

void elementwise(Device device) {
  const Numbers values = numbers(1000);
  const Tensor x = tensor_of(values, {10, 100}).to(device);
  begin("x * 2 + 1");
  expect(x * 2 + 1, map(values, [](double v) { return v * 2 + 1; }));
  begin("relu");
  expect(relu(x), map(values, [](double v) { return std::max(v, 0.0); }));
  begin("exp");
  expect(exp(x), map(values, [](double v) { return std::exp(v); }), 1e-6);
  begin("tanh in float64");
  expect(tanh(x.to(float64)), map(values, [](double v) { return std::tanh(v); }), 1e-14);
  for (const DType half : {float16, bfloat16}) {
    begin("x + x in " + std::string(name(half)));
    expect(x.to(half) + x.to(half), map(values, [](double v) { return v + v; }));
  }
  begin("a column plus a row");
  const Numbers column = numbers(10, 3), row = numbers(100, 5);
  Numbers sums;
  for (const double c : column)
    for (const double r : row) sums.push_back(c + r);
  expect(tensor_of(column, {10, 1}).to(device) + tensor_of(row, {1, 100}).to(device), sums);
  begin("a transposed operand");
  const Numbers square = numbers(100, 7);
  const Tensor s = tensor_of(square, {10, 10}).to(device);
  Numbers difference;
  for (std::size_t i = 0; i < 10; ++i)
    for (std::size_t j = 0; j < 10; ++j) difference.push_back(square[i * 10 + j] - square[j * 10 + i]);
  expect(s - transpose(s, 0, 1), difference);
}

void reduction(Device device) {
  const int64_t rows = 50, columns = 300;
  const Numbers values = numbers(rows * columns);
  const Tensor x = tensor_of(values, {rows, columns}).to(device);
  Numbers of_rows(rows, 0), of_columns(columns, 0), largest(rows, -9), powers(values);
  double all = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const double value = values[r * columns + c];
      of_rows[r] += value;
      of_columns[c] += value;
      all += value;
      largest[r] = std::max(largest[r], value);
    }
  for (int64_t r = 0; r < rows; ++r) {
    double total = 0;
    for (int64_t c = 0; c < columns; ++c) total += std::exp(values[r * columns + c]);
    for (int64_t c = 0; c < columns; ++c) powers[r * columns + c] = std::exp(values[r * columns + c]) / total;
  }
  begin("the sum of all");
  expect(sum(x), {all}, 1e-6);
  begin("sums of rows");
  expect(sum(x, {1}), of_rows, 1e-6);
  begin("sums of columns");
  expect(sum(x, {0}), of_columns, 1e-6);
  begin("maxima of rows");
  expect(max(x, {1}), largest);
  begin("a million integers");
  expect(sum(arange(1, 1000001).to(device)), {500000500000.0});
  begin("softmax");
  expect(softmax(x, 1), powers, 1e-5);
}

/// [m, n] = [m, k] x [k, n], of one member of two batches.
Numbers product(const Numbers& a, const Numbers& b, int64_t m, int64_t n, int64_t k, int64_t batch) {
  Numbers c(m * n, 0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) c[i * n + j] += a[(batch * m + i) * k + l] * b[(batch * k + l) * n + j];
  return c;
}

void cublas(Device device) {
  const int64_t m = 33, n = 20, k = 47, batches = 3;
  const Numbers a = numbers(batches * m * k, 1), b = numbers(batches * k * n, 2);
  Numbers all;
  for (int64_t i = 0; i < batches; ++i) {
    const Numbers one = product(a, b, m, n, k, i);
    all.insert(all.end(), one.begin(), one.end());
  }
  const Numbers first(all.begin(), all.begin() + m * n);
  const Tensor x = tensor_of(a, {batches, m, k}).to(device), y = tensor_of(b, {batches, k, n}).to(device);
  begin("float32");
  expect(matmul(x[0], y[0]), first, 1e-6);
  begin("float64");
  expect(matmul(x[0].to(float64), y[0].to(float64)), first, 1e-14);
  begin("transposed operands");
  const Tensor xt = transpose(x[0], 0, 1).contiguous(), yt = transpose(y[0], 0, 1).contiguous();
  expect(matmul(transpose(xt, 0, 1), transpose(yt, 0, 1)), first, 1e-6);
  begin("a batch");
  expect(matmul(x, y), all, 1e-6);
  begin("float16");
  expect(matmul(x[0].to(float16), y[0].to(float16)), first, 1e-3);
  begin("bfloat16");
  expect(matmul(x[0].to(bfloat16), y[0].to(bfloat16)), first, 1e-2);
}

/// A convolution of 2 dimensions, padded by 1, and the three passes by their definition.
struct Convolution {
  int64_t batch = 2, in = 8, out = 16, height = 9, width = 7, kernel = 3, stride = 1;
  int64_t out_height = (height - 1) / stride + 1, out_width = (width - 1) / stride + 1;  // for kernel 3
  Shape x_shape{batch, in, height, width}, w_shape{out, in, kernel, kernel};
  Shape y_shape{batch, out, out_height, out_width};
  Numbers x = numbers(batch * in * height * width, 1), w = numbers(out * in * kernel * kernel, 2);
  Numbers dy = numbers(batch * out * out_height * out_width, 3);
  Numbers y = Numbers(dy.size(), 0), dx = Numbers(x.size(), 0), dw = Numbers(w.size(), 0);

  void compute() {
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t k = 0; k < out; ++k)
        for (int64_t i = 0; i < out_height; ++i)
          for (int64_t j = 0; j < out_width; ++j)
            for (int64_t c = 0; c < in; ++c)
              for (int64_t r = 0; r < kernel; ++r)
                for (int64_t s = 0; s < kernel; ++s) {
                  const int64_t h = i * stride + r - 1, v = j * stride + s - 1;
                  if (h < 0 || h >= height || v < 0 || v >= width) continue;
                  const int64_t at_y = ((n * out + k) * out_height + i) * out_width + j;
                  const int64_t at_x = ((n * in + c) * height + h) * width + v;
                  const int64_t at_w = ((k * in + c) * kernel + r) * kernel + s;
                  y[at_y] += x[at_x] * w[at_w];
                  dx[at_x] += dy[at_y] * w[at_w];
                  dw[at_w] += dy[at_y] * x[at_x];
                }
  }
};

void convolve(Device device, const std::string& implementation) {
  for (const int64_t stride : {1, 2})
    for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
      Convolution c{.stride = stride};
      c.compute();
      const std::string what =
          std::string(format == MemoryFormat::contiguous ? "contiguous" : "channels_last") + ", stride " +
          std::to_string(stride);
      const ConvOptions options{.stride = stride, .padding = 1, .implementation = implementation};
      const Tensor x = tensor_of(c.x, c.x_shape).to(format).to(device);
      const Tensor w = tensor_of(c.w, c.w_shape).to(format).to(device);
      const Tensor dy = tensor_of(c.dy, c.y_shape).to(format).to(device);
      begin("forward, " + what);
      expect(ops::conv_forward(x, w, {}, options), c.y, 1e-5);
      begin("backward to the input, " + what);
      expect(ops::conv_backward_input(dy, w, c.x_shape, options), c.dx, 1e-5);
      begin("backward to the weight, " + what);
      expect(ops::conv_backward_weight(dy, x, c.w_shape, options), c.dw, 1e-5);
    }
}

void unfold(Device device) { convolve(device, "unfold"); }

void cudnn(Device device) {
  const std::vector<std::string> known = ops::conv_implementations(device);
  const bool has_cudnn = std::find(known.begin(), known.end(), "cudnn") != known.end();
  if (device.is_cuda() && !has_cudnn) throw LeftOut("this build has no cuDNN");
  convolve(device, has_cudnn ? "cudnn" : "");
}

void selftest(Device device) {
  begin("a wrong number");
  expect(from_vector(std::vector<float>{1, 2, 3}).to(device), {1, 2, 4});
}

struct Check {
  const char* name;
  void (*run)(Device device);
};
constexpr Check checks[] = {{"copy", copy},        {"elementwise", elementwise}, {"reduction", reduction},
                            {"cublas", cublas},    {"unfold", unfold},           {"cudnn", cudnn},
                            {"selftest", selftest}};

int run(const Check& check, const std::string& where) {
  try {
    begin("the device");
    const Device device(where);
    if (device.is_cuda()) cuda::check_device("smoke", device);
    check.run(device);
    std::printf("%s: well\n", check.name);
    return 0;
  } catch (const LeftOut& reason) {
    std::printf("%s: left out: %s\n", check.name, reason.what());
    return 77;
  } catch (const std::exception& error) {
    std::printf("%s: %s: %s\n", check.name, step.c_str(), error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string where = argc > 2 ? argv[2] : "cuda";
  for (const Check& check : checks)
    if (argc >= 2 && argc <= 3 && std::strcmp(argv[1], check.name) == 0 &&
        (where == "cpu" || where == "cuda"))
      return run(check, where);
  std::fprintf(stderr, "usage: smoke copy|elementwise|reduction|cublas|unfold|cudnn|selftest [cuda|cpu]\n");
  return 2;
}
