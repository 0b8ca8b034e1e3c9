#include "pleat/ops/conv/conv_kernels.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "pleat/core/base/error.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/parallel/threads_scope.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/ops/conv_cases.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::test;
using Catch::Matchers::Contains;

namespace {

/// The three passes of a convolution.
struct Passes {
  Tensor y, dx, dw;
};

Passes run(const ConvCase& c, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& dy,
           const std::string& implementation, std::optional<MemoryFormat> format = {}) {
  ConvOptions options = c.options;
  options.implementation = implementation;
  options.format = format;
  return {ops::conv_forward(x, w, b, options), ops::conv_backward_input(dy, w, c.input, options),
          ops::conv_backward_weight(dy, x, c.weight, options)};
}

/// What the textbook loops give. They share only the formula with the library.
struct Textbook {
  std::vector<double> y, dx, dw;
};

/// Calls f(y index, x index, w index) for every product of the convolution.
template <class F>
void for_each_product(const ops::ConvProblem& p, const F& f) {
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t k = 0; k < p.out_channels; ++k)
      for (int64_t o = 0; o < p.output_pixels(); ++o)
        for (int64_t c = 0; c < p.group_in(); ++c)
          for (int64_t t = 0; t < p.taps(); ++t) {
            const int64_t out[3] = {o / (p.output[2] * p.output[1]), o / p.output[2] % p.output[1],
                                    o % p.output[2]};
            const int64_t tap[3] = {t / (p.kernel[2] * p.kernel[1]), t / p.kernel[2] % p.kernel[1],
                                    t % p.kernel[2]};
            int64_t at = 0;
            bool inside = true;
            for (std::size_t d = 0; d < 3; ++d) {
              const int64_t i = out[d] * p.stride[d] - p.padding_low[d] + tap[d] * p.dilation[d];
              inside = inside && i >= 0 && i < p.input[d];
              at = at * p.input[d] + i;
            }
            if (!inside) continue;
            const int64_t channel = k / p.group_out() * p.group_in() + c;
            f((n * p.out_channels + k) * p.output_pixels() + o,
              (n * p.in_channels + channel) * p.input_pixels() + at, (k * p.group_in() + c) * p.taps() + t);
          }
}

Textbook textbook(const ops::ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& dy) {
  const auto xs = x.to_vector<double>();
  const auto ws = w.to_vector<double>();
  const auto dys = dy.to_vector<double>();
  Textbook result{std::vector<double>(dys.size()), std::vector<double>(xs.size()),
                  std::vector<double>(ws.size())};
  for_each_product(p, [&](int64_t out, int64_t in, int64_t weight) {
    const auto o = static_cast<std::size_t>(out);
    const auto i = static_cast<std::size_t>(in);
    const auto k = static_cast<std::size_t>(weight);
    result.y[o] += xs[i] * ws[k];
    result.dx[i] += dys[o] * ws[k];
    result.dw[k] += dys[o] * xs[i];
  });
  return result;
}

void check_equal(const Passes& got, const Passes& expected) {
  CHECK(got.y.to_vector() == expected.y.to_vector());
  CHECK(got.dx.to_vector() == expected.dx.to_vector());
  CHECK(got.dw.to_vector() == expected.dw.to_vector());
}

void check_near(const Passes& got, const Textbook& expected, double tolerance) {
  CHECK(relative_error(got.y, expected.y) < tolerance);
  CHECK(relative_error(got.dx, expected.dx) < tolerance);
  CHECK(relative_error(got.dw, expected.dw) < tolerance);
}

ops::ConvProblem problem_of(const ConvCase& c, Device device = default_device(), DType dtype = float64) {
  const Tensor like = empty({}, {.dtype = dtype, .device = device});
  return ops::make_conv_problem("conv", static_cast<int>(c.input.size()) - 2, {"input", c.input, like},
                                {"weight", c.weight, like}, c.options);
}

constexpr ops::ConvPass all_passes[] = {ops::ConvPass::forward, ops::ConvPass::backward_input,
                                        ops::ConvPass::backward_weight};

/// Whether an implementation can compute all passes of a case.
bool can_compute(const ops::ConvImplementation& implementation, const ops::ConvProblem& problem) {
  for (const ops::ConvPass pass : all_passes)
    if (!implementation.unsupported(problem, pass).empty()) return false;
  return true;
}

/// Those that can compute a case; on the CPU each of their plans.
std::vector<std::string> implementations_for(const ConvCase& c, Device device = default_device(),
                                             DType dtype = float64) {
  std::vector<std::string> names;
  const ops::ConvProblem problem = problem_of(c, device, dtype);
  for (const ops::ConvImplementation* implementation : ops::all_conv_implementations()) {
    const std::string name(implementation->name());
    if (!can_compute(*implementation, problem) || std::find(names.begin(), names.end(), name) != names.end())
      continue;
    const std::size_t before = names.size();
    if (device.is_cpu() && problem.batch > 0)
      for (const std::string& plan : implementation->plans(problem, ops::ConvPass::forward))
        names.push_back(name + ":" + plan);
    if (names.size() == before) names.push_back(name);
  }
  return names;
}

/// The same elements as a tensor with gaps and permuted dimensions.
Tensor scattered(const Tensor& x) {
  Shape wide = x.shape();
  std::swap(wide.front(), wide.back());
  wide[0] *= 2;
  const Tensor memory = zeros(wide, {.dtype = x.dtype(), .device = x.device()});
  Strides strides = memory.strides();
  strides[0] *= 2;
  std::swap(strides.front(), strides.back());
  const Tensor view = memory.as_strided(x.shape(), strides, 0);
  ops::copy_into(view, x);
  return view;
}

Tensor integers(const Shape& shape, int64_t bound, DType dtype, Generator& generator) {
  return ops::cast(randint(-bound, bound + 1, shape, generator), dtype);
}

struct Operands {
  Tensor x, w, dy;
};

/// Random normal numbers.
Operands operands(const ConvCase& c, DType dtype, Generator& generator) {
  return {randn(c.input, {.dtype = dtype}, generator), randn(c.weight, {.dtype = dtype}, generator),
          randn(problem_of(c).output_shape(), {.dtype = dtype}, generator)};
}

/// All passes of all implementations that compute the case on the device, or of the one named, against the
/// textbook, in every layout.
void check_against_textbook(const ConvCase& c, Device device, const std::string& only, Generator& generator) {
  INFO(c.name());
  const ops::ConvProblem p = problem_of(c);
  const auto [x, w, dy] = operands(c, float64, generator);
  const Textbook expected = textbook(p, x, w, dy);
  for (const DType dtype : {float64, float32}) {
    const auto there = [&](const Tensor& t) { return ops::to_device(ops::cast(t, dtype), device); };
    const auto last = [](const Tensor& t) { return ops::to_format(t, MemoryFormat::channels_last); };
    const double tolerance = dtype == float64 ? 1e-12 : 1e-5;
    const Tensor xs = there(x), ws = there(w), dys = there(dy);
    for (const std::string& implementation : implementations_for(c, device, dtype)) {
      if (!only.empty() && implementation != only) continue;
      INFO(implementation << " " << name(dtype));
      const auto check_passes = [&](const Tensor& in, const Tensor& weight, const Tensor& dout,
                                    std::optional<MemoryFormat> format = {}) {
        const Passes got = run(c, in, weight, {}, dout, implementation, format);
        CHECK(got.y.shape() == p.output_shape());
        if (format.has_value())
          for (const Tensor& result : {got.y, got.dx, got.dw}) CHECK(result.is_contiguous(*format));
        check_near(got, expected, tolerance);
      };
      check_passes(xs, ws, dys);
      if (dtype == float32) continue;
      check_passes(scattered(xs), scattered(ws), scattered(dys));
      check_passes(last(xs), last(ws), last(dys));
      check_passes(xs, ws, dys, MemoryFormat::contiguous);
      check_passes(last(xs), ws, scattered(dys), MemoryFormat::contiguous);
      check_passes(xs, ws, dys, MemoryFormat::channels_last);
    }
  }
}

/// The table's cases on a GPU, or every n-th of those beyond the hand-picked ones.
void check_on_gpu(const std::string& implementation, std::size_t every) {
  constexpr std::size_t picked = 28;
  Generator generator(7);
  const auto cases = conv_cases();
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (i < picked || i % every == 0)
      check_against_textbook(cases[i], Device(DeviceType::cuda), implementation, generator);
}

ops::ConvProblem problem_with(DType dtype, const ConvOptions& options) {
  const Tensor like = empty({}, {.dtype = dtype});
  const Shape input{2, 3, 8, 8}, weight{4, 3, 3, 3};
  return ops::make_conv_problem("conv2d", 2, {"input", input, like}, {"weight", weight, like}, options);
}

}  // namespace

TEST_CASE("every convolution implementation agrees with the textbook, in every layout", "[conv]") {
  Generator generator(7);
  const auto cases = conv_cases();
  REQUIRE(cases.size() >= 300);
  for (const ConvCase& c : cases) check_against_textbook(c, Device(), {}, generator);
}

TEST_CASE("cuda: every convolution implementation agrees with the textbook", "[conv][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  std::vector<std::string> names = ops::conv_implementations(Device(DeviceType::cuda));
  std::erase(names, "cudnn");
  for (const std::string& name : names) check_on_gpu(name, 1);
}

TEST_CASE("cuda: cuDNN takes operands at any address", "[conv][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Device gpu(DeviceType::cuda);
  const Tensor x =
      randn({289}, {.dtype = float64, .device = gpu}).as_strided({2, 4, 6, 6}, {144, 36, 6, 1}, 1);
  const Tensor w = randn({145}, {.dtype = float64, .device = gpu}).as_strided({4, 4, 3, 3}, {36, 9, 3, 1}, 1);
  const ConvOptions options{.padding = 1, .implementation = "cudnn"};
  CHECK(ops::conv_forward(x, w, {}, options).to_vector<double>() ==
        ops::conv_forward(ops::copy(x), ops::copy(w), {}, options).to_vector<double>());
}

TEST_CASE("an infinity at the end of a line is in no gradient of a weight that does not read it",
          "[conv][cpu]") {
  Generator generator(12);
  for (const int64_t channels : {1, 3, 5, 8, 14}) {
    const Tensor x = randn({1, channels, 9, 30}, {}, generator), dy = ones({1, channels, 7, 28});
    fill_(narrow(x, 3, 29, 1), std::numeric_limits<double>::infinity());
    const auto finite = [&](const std::string& name) {
      const ConvOptions options{.groups = channels, .implementation = name};
      return isfinite(ops::conv_backward_weight(dy, x, {channels, 1, 3, 3}, options)).to_vector<bool>();
    };
    CHECK(finite("direct") == finite("reference"));
  }
}

TEST_CASE("cuda: the gradient of a depthwise weight adds up several tiles of a block", "[conv][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  // So many channels that each has one block, whose images do not fit into a tile.
  Generator generator(11);
  const Tensor x = integers({8, 2120, 1, 1}, 4, float32, generator),
               dy = integers({8, 2120, 1, 1}, 4, float32, generator);
  const auto gradient = [&](const Device& device, const std::string& name, MemoryFormat format) {
    const ConvOptions options{.padding = 7, .groups = 2120, .implementation = name, .format = format};
    return ops::conv_backward_weight(dy.to(device), x.to(device), {2120, 1, 15, 15}, options)
        .to_vector<float>();
  };
  for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last})
    CHECK(gradient(Device(DeviceType::cuda), "direct", format) == gradient(Device(), "reference", format));
}

TEST_CASE("cuda: convolution through cuDNN agrees with the textbook", "[conv][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const auto able = implementations_for({{2, 3, 5, 7}, {4, 3, 3, 3}, {}}, Device(DeviceType::cuda), float32);
  if (std::find(able.begin(), able.end(), "cudnn") == able.end())
    return pleat_test::skip("built without cuDNN");
  check_on_gpu("cudnn", 5);  // each new problem takes cuDNN some time to plan
}

TEST_CASE("on small integers all implementations give the same bits, with any number of threads", "[conv]") {
  const int before = num_threads();
  Generator generator(8);
  for (const ConvCase& c : conv_cases()) {
    INFO(c.name());
    const ops::ConvProblem p = problem_of(c);
    // Of half types only the results are rounded, once, also where slices or parts are added up.
    for (const DType dtype : {float32, float16, bfloat16}) {
      const Tensor x = integers(c.input, 4, dtype, generator);
      const Tensor w = integers(c.weight, 4, dtype, generator);
      const Tensor b = integers({c.weight[0]}, 4, dtype, generator);
      const Tensor dy = integers(p.output_shape(), 4, dtype, generator);
      set_num_threads(1);
      const Passes expected = run(c, x, w, b, dy, "reference");
      const auto check_run = [&](const std::string& implementation, std::optional<MemoryFormat> format) {
        INFO(implementation << (format.has_value() ? " contiguous " : " ") << name(dtype));
        const Passes got = run(c, x, w, b, dy, implementation, format);
        CHECK(got.y.dtype() == dtype);
        check_equal(got, expected);
      };
      for (const std::string& implementation : implementations_for(c)) {
        if (implementation.starts_with("winograd")) continue;  // computes with fractions
        for (const std::optional<MemoryFormat> format :
             {std::optional<MemoryFormat>(), std::optional(MemoryFormat::contiguous)})
          check_run(implementation, format);
      }
      if (dtype != float16) continue;
      const ConvPolicy slices{{.workspace_limit = 2000}};
      check_run("unfold", {});
      check_run("unfold", MemoryFormat::contiguous);
    }
  }
  set_num_threads(before);
}

TEST_CASE("convolutions do not depend on the number of threads, to the bit", "[conv]") {
  const int before = num_threads();
  Generator generator(9);
  for (const ConvCase& c : {ConvCase{{9, 16, 20, 20}, {24, 16, 3, 3}, {.padding = 1}},
                            ConvCase{{9, 16, 20, 20}, {24, 16, 3, 3}, {.stride = 2, .padding = 1}},
                            ConvCase{{5, 8, 9, 9}, {16, 1, 3, 3}, {.padding = 1, .groups = 8}}}) {
    const Tensor x = randn(c.input, {}, generator);
    const Tensor w = randn(c.weight, {}, generator);
    const Tensor b = randn({c.weight[0]}, {}, generator);
    const Tensor dy = randn(problem_of(c).output_shape(), {}, generator);
    for (const std::string& implementation : implementations_for(c)) {
      set_num_threads(1);
      const Passes one = run(c, x, w, b, dy, implementation);
      for (const int threads : {2, 3, 5}) {
        set_num_threads(threads);
        const Passes many = run(c, x, w, b, dy, implementation);
        check_equal(many, one);
      }
    }
  }
  set_num_threads(before);
}

TEST_CASE("half types: exact products, sums of float32, one rounding, in every layout", "[conv]") {
  Generator generator(11);
  std::vector<ConvCase> cases = conv_cases();
  cases.resize(120);
  for (const ConvCase& c : cases) {
    INFO(c.name());
    const ops::ConvProblem p = problem_of(c);
    for (const DType dtype : {float16, bfloat16}) {
      const auto [x, w, dy] = operands(c, dtype, generator);
      const Textbook expected = textbook(p, x, w, dy);
      // Each element is off by at most half a unit of its last place, and what the sums are off.
      const double tolerance = (dtype == float16 ? 0x1p-11 : 0x1p-8) + 1e-5;
      for (const std::string& implementation : implementations_for(c, default_device(), dtype))
        for (const std::optional<MemoryFormat> format :
             {std::optional<MemoryFormat>(), std::optional(MemoryFormat::contiguous)}) {
          INFO(implementation);
          const Passes got = run(c, x, w, {}, dy, implementation, format);
          CHECK(got.y.dtype() == dtype);
          check_near(got, expected, tolerance);
        }
    }
  }
}

TEST_CASE("convolutions in small slices agree with the textbook", "[conv]") {
  Generator generator(12);
  for (const ConvCase& c : conv_cases()) {
    INFO(c.name());
    const ops::ConvProblem p = problem_of(c);
    const auto [x, w, dy] = operands(c, float64, generator);
    const Textbook expected = textbook(p, x, w, dy);
    for (const int64_t limit : {700, 9000}) {
      const ConvPolicy guard{{.workspace_limit = limit}};
      for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
        const Passes got = run(c, x, w, {}, dy, "unfold", format);
        check_near(got, expected, 1e-12);
      }
    }
  }
}

TEST_CASE("a conv3d with a (1, 3, 3) kernel is a conv2d's work in both formats", "[conv]") {
  Generator generator(13);
  const int64_t n = 3, c = 8, k = 6, depth = 4, size = 25;
  for (const int64_t stride : {1, 2})
    for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
      const ConvCase deep{{n, c, depth, size, size},
                          {k, c, 1, 3, 3},
                          {.stride = {1, stride, stride}, .padding = {0, 1, 1}, .format = format}};
      const ConvCase flat{
          {n * depth, c, size, size}, {k, c, 3, 3}, {.stride = stride, .padding = 1, .format = format}};
      const auto [x, w, dy] = operands(deep, float64, generator);
      /// The images [N, C, D, ...] as [N D, C, ...].
      const auto images = [](const Tensor& t) {
        const Tensor turned = ops::to_format(transpose(t, 1, 2), MemoryFormat::contiguous);
        return reshape(turned, {t.size(0) * t.size(2), t.size(1), t.size(3), t.size(4)});
      };
      for (const ops::ConvImplementation* one : ops::all_conv_implementations()) {
        const ops::ConvProblem problem = problem_of(deep);
        if (!one->unsupported(problem, ops::ConvPass::forward).empty()) continue;
        const std::string name(one->name());
        INFO(name);
        const Passes in_3d = run(deep, x, w, {}, dy, name, format);
        const Passes in_2d = run(flat, images(x), reshape(w, flat.weight), {}, images(dy), name, format);
        CHECK(relative_error(images(in_3d.y), in_2d.y) < 1e-13);
        CHECK(relative_error(images(in_3d.dx), in_2d.dx) < 1e-13);
        CHECK(relative_error(in_3d.dw.to_vector<double>(), in_2d.dw.to_vector<double>()) < 1e-13);
        if (one->layout(problem) == ops::ConvLayout::strided) continue;
        const MemoryFormat inside = one->layout(problem) == ops::ConvLayout::nchw
                                        ? MemoryFormat::contiguous
                                        : MemoryFormat::channels_last;
        for (const ops::ConvPass pass : all_passes) {
          INFO(ops::name(pass));
          CHECK(one->workspace_bytes(ops::simplify(problem, inside), pass) ==
                one->workspace_bytes(ops::simplify(problem_of(flat), inside), pass));
        }
      }
    }
}

/// `p` as the implementation takes it.
void check_announced_memory(const ops::ConvImplementation& one, const ops::ConvProblem& p,
                            ops::ConvPass pass) {
  const auto tensor = [&](int64_t a, int64_t b, const ops::Spatial& sizes) {
    return zeros({a, b, sizes[0], sizes[1], sizes[2]},
                 {.dtype = p.dtype, .device = p.device, .format = p.format});
  };
  const Tensor x = tensor(p.batch, p.in_channels, p.input);
  const Tensor w = tensor(p.out_channels, p.group_in(), p.kernel);
  const Tensor y = tensor(p.batch, p.out_channels, p.output);
  const int64_t before = allocator_statistics(p.device).allocated;
  reset_peak_statistics(p.device);
  if (pass == ops::ConvPass::forward)
    one.forward(p, x, w, {}, y);
  else if (pass == ops::ConvPass::backward_input)
    one.backward_input(p, y, w, x);
  else
    one.backward_weight(p, y, x, w);
  const int64_t used = allocator_statistics(p.device).peak - before;
  const int64_t announced = one.workspace_bytes(p, pass);
  CHECK(used >= announced);
  // Sizes of blocks are rounded up; backward_input has one for each class of pixels.
  const int64_t classes = p.stride[0] * p.stride[1] * p.stride[2];
  CHECK(used <= announced + announced / 4 + (p.device.is_cuda() ? 8 * 512 : (2 + classes) * 64));
}

TEST_CASE("implementations on a GPU use the memory that they announce", "[conv][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Tensor first = ones({1, 1}, "cuda");
  matmul(first, first);  // cuBLAS takes its memory at its first use
  for (const ConvCase& c : conv_cases())
    for (const ops::ConvImplementation* one : ops::all_conv_implementations())
      for (const MemoryFormat format : {MemoryFormat::channels_last, MemoryFormat::contiguous})
        for (const ops::ConvPass pass : all_passes)
          for (const int64_t limit : {int64_t{5000}, int64_t{1} << 30}) {
            ops::ConvProblem given = problem_of(c);
            given.device = Device(DeviceType::cuda);
            if (one->name() != "unfold" && one->name() != "direct") continue;
            if (!one->unsupported(given, pass).empty() || given.batch == 0) continue;
            ops::ConvProblem p = ops::simplify(given, format);
            p.dtype = limit == 5000 ? float16 : float32;
            INFO(c.name() << " " << one->name() << " " << ops::name(pass) << " " << limit);
            const ConvPolicy guard{{.workspace_limit = limit}};
            check_announced_memory(*one, p, pass);
          }
}

TEST_CASE("an empty batch may be asked for its workspace", "[conv]") {
  const ops::ConvProblem p = problem_of({{0, 4, 9, 9}, {4, 4, 3, 3}, {}});
  for (const ops::ConvImplementation* one : ops::all_conv_implementations())
    for (const ops::ConvPass pass : all_passes)
      if (one->runs_on(p.device) && one->unsupported(p, pass).empty())
        CHECK(one->workspace_bytes(ops::solved_problem(p, *one), pass) >= 0);
}

TEST_CASE("direct convolution uses the memory that it announces", "[conv][cpu]") {
  const ThreadsScope one_thread(1);
  for (const ConvCase& c : conv_cases())
    for (const ops::ConvPass pass : {ops::ConvPass::forward, ops::ConvPass::backward_input})
      for (const DType dtype : {float32, float64}) {
        ops::ConvProblem p = ops::simplify(problem_of(c), MemoryFormat::channels_last);
        p.dtype = dtype;
        const auto direct = ops::all_conv_implementations().find(p, pass, "direct");
        if (direct == nullptr || p.batch == 0) continue;
        INFO(c.name() << " " << ops::name(pass) << " " << name(dtype));
        check_announced_memory(*direct, p, pass);
      }
}

TEST_CASE("half types are computed in float32 and rounded once", "[conv]") {
  Generator generator(10);
  const ConvCase c{{2, 5, 7, 7}, {6, 5, 3, 3}, {.padding = 1}};
  for (const DType dtype : {float16, bfloat16}) {
    const Tensor x = randn(c.input, {.dtype = dtype}, generator);
    const Tensor w = randn(c.weight, {.dtype = dtype}, generator);
    const Tensor y = ops::conv_forward(x, w, {}, c.options);
    CHECK(y.dtype() == dtype);
    const Tensor exact = ops::conv_forward(ops::cast(x, float32), ops::cast(w, float32), {}, c.options);
    CHECK(y.to_vector() == ops::cast(exact, dtype).to_vector());
  }
}

TEST_CASE("convolution problems reduce to simpler ones", "[conv]") {
  const auto reduced = [](const ConvCase& c) {
    return ops::simplify(problem_of(c), MemoryFormat::channels_last);
  };
  const ConvCase flat{{2 * 6, 3, 5, 4}, {4, 3, 3, 3}, {.padding = 1}};
  const ConvCase deep{{2, 3, 6, 5, 4}, {4, 3, 1, 3, 3}, {.padding = {0, 1, 1}}};
  CHECK(reduced(deep) == reduced(flat));
  const ops::ConvProblem pointwise = reduced({{2, 3, 6, 5, 4}, {4, 3, 1, 1, 1}, {}});
  CHECK(pointwise.batch == 2 * 6 * 5 * 4);
  CHECK(pointwise.output_pixels() == 1);
  const ops::ConvProblem linear = reduced({{7, 3, 4, 4}, {9, 3, 4, 4}, {}});
  CHECK(linear.in_channels == 48);
  CHECK(linear.taps() == 1);
  const ops::ConvProblem merged = reduced({{2, 3, 6, 5, 4}, {4, 3, 3, 1, 1}, {.padding = {1, 0, 0}}});
  CHECK(merged.input == ops::Spatial{1, 6, 20});
  const ops::ConvProblem patches = reduced({{2, 3, 8, 12}, {5, 3, 4, 4}, {.stride = 4}});
  CHECK(patches.in_channels == 12);
  CHECK(patches.taps() == 4);
}

TEST_CASE("bad convolutions are refused with an explanation", "[conv][cpu]") {
  const Tensor x = zeros({8, 3, 32, 32});
  const Tensor w = zeros({16, 3, 3, 3});
  const auto conv = [&](const Tensor& a, const Tensor& b, const ConvOptions& options) {
    return ops::conv_forward(a, b, {}, options);
  };
  CHECK_THROWS_WITH(conv(x, zeros({16, 4, 3, 3}), {}),
                    "conv2d: input has 3 channels, but weight [16, 4, 3, 3] with groups = 1 needs 4; a "
                    "weight is [K, C / groups, kernel...]\n"
                    "  input  [8, 3, 32, 32] float32 cpu\n"
                    "  weight [16, 4, 3, 3] float32 cpu");
  CHECK_THROWS_WITH(conv(x, w, {.stride = 0}), Contains("conv2d: stride must be at least 1, got [0, 0]"));
  CHECK_THROWS_WITH(conv(x, w, {.dilation = -1}), Contains("dilation must be at least 1"));
  CHECK_THROWS_WITH(conv(x, w, {.padding = -1}), Contains("padding must not be negative"));
  CHECK_THROWS_WITH(conv(x, w, {.padding = {1, 2, 3}}), Contains("padding needs one value, or 2"));
  CHECK_THROWS_WITH(conv(x, w, {.stride = {1, 2, 3}}), Contains("stride needs one value, or 2"));
  CHECK_THROWS_WITH(conv(x, w, {.stride = 2, .padding = "same"}), Contains("\"same\" needs stride 1"));
  CHECK_THROWS_WITH(conv(x, w, {.padding = "full"}), Contains("got \"full\""));
  CHECK_THROWS_WITH(conv(x, w, {.groups = 0}), Contains("groups must be at least 1"));
  CHECK_THROWS_WITH(conv(x, w, {.groups = 2}),
                    Contains("groups = 2 must divide 3 input and 16 output channels"));
  CHECK_THROWS_WITH(conv(x, zeros({16, 3, 33, 33}), {}),
                    Contains("a kernel of 33 with dilation 1 reaches over 33"));
  CHECK_THROWS_AS(conv(x, w, {.dilation = int64_t{1} << 62}), ShapeError);
  CHECK_THROWS_AS(conv(x, w, {.padding = int64_t{1} << 62}), ShapeError);
  CHECK_THROWS_WITH(conv(zeros({3, 32}), w, {}), Contains("input needs 4 dimensions"));
  CHECK_THROWS_WITH(conv(zeros({8, 3, 32, 32}, {.dtype = float64}), w, {}),
                    Contains("input is float64, weight is float32"));
  CHECK_THROWS_AS(conv(zeros({8, 3, 32, 32}, {.dtype = int64}), zeros({16, 3, 3, 3}, {.dtype = int64}), {}),
                  DTypeError);
  CHECK_THROWS_WITH(conv(zeros({8, 3, 0, 32}), w, {.padding = 2}),
                    Contains("spatial sizes must be at least 1"));
  CHECK_THROWS_WITH(conv(x, zeros({16, 3, 0, 3}), {}), Contains("every size of the weight"));
  CHECK_THROWS_WITH(ops::conv_forward(x, w, zeros({4}), {}), Contains("bias needs shape [16], got [4]"));
  CHECK_THROWS_WITH(ops::conv_backward_input(zeros({8, 16, 31, 30}), w, x.shape(), {}),
                    Contains("dy needs shape [8, 16, 30, 30], got [8, 16, 31, 30]"));
  CHECK_THROWS_WITH(ops::conv_backward_weight(zeros({8, 15, 30, 30}), x, w.shape(), {}),
                    Contains("dy needs shape"));
  CHECK_THROWS_WITH(conv(x, w, {.implementation = "fft"}), Contains("there is no implementation \"fft\""));
  CHECK_THROWS_WITH(
      conv(zeros({1, 4, 8, 8}), zeros({4, 2, 3, 3}), {.groups = 2, .implementation = "winograd"}),
      Contains("implementation \"winograd\" cannot compute the forward pass of n1 c4 k4 hw8 r3 s1 p0 g2: ") &&
          Contains("; these can: direct, unfold, "));
}

TEST_CASE("an implementation without a cost is not taken unasked", "[conv][cpu]") {
  struct Costless : ops::ConvImplementation {
    std::string_view name() const override { return "costless"; }
    bool runs_on(Device) const override { return true; }
    std::string unsupported(const ops::ConvProblem&, ops::ConvPass) const override { return {}; }
    ops::ConvLayout layout(const ops::ConvProblem&) const override { return ops::ConvLayout::strided; }
    int64_t workspace_bytes(const ops::ConvProblem&, ops::ConvPass) const override { return 0; }
    void forward(const ops::ConvProblem&, const Tensor&, const Tensor&, const Tensor&,
                 const Tensor&) const override {}
    void backward_input(const ops::ConvProblem&, const Tensor&, const Tensor&, const Tensor&) const override {
    }
    void backward_weight(const ops::ConvProblem&, const Tensor&, const Tensor&,
                         const Tensor&) const override {}
  };
  const Costless costless;
  std::vector<const ops::ConvImplementation*> list{&costless};
  for (const ops::ConvImplementation* one : ops::all_conv_implementations()) list.push_back(one);
  const ops::Implementations<ops::ConvImplementation> all(list);
  const ops::Implementations<ops::ConvImplementation> alone({&costless});
  for (const ConvCase& c : conv_cases())
    for (const ops::ConvPass pass : all_passes) {
      const ops::ConvProblem p = problem_of(c);
      CHECK(all.find(p, pass, "")->name() == ops::all_conv_implementations().find(p, pass, "")->name());
      CHECK(all.find(p, pass, "costless").get() == &costless);
      CHECK(alone.find(p, pass, "").get() == &costless);
    }
}

TEST_CASE("a policy sets the implementation for a scope", "[conv][cpu]") {
  const Tensor x = zeros({1, 2, 4, 4});
  const Tensor w = zeros({3, 2, 3, 3});
  const auto format = [&] { return ops::conv_forward(x, w, {}, {}).memory_format(); };
  CHECK(format() == MemoryFormat::channels_last);
  {
    const ConvPolicy guard{{.implementation = "reference"}};
    CHECK(format() == MemoryFormat::contiguous);
    const ConvPolicy inner{{.implementation = "unfold"}};
    CHECK(format() == MemoryFormat::channels_last);
  }
  CHECK(format() == MemoryFormat::channels_last);
  {
    const ConvPolicy guard{{.format = MemoryFormat::contiguous}};
    CHECK(format() == MemoryFormat::contiguous);
    const Tensor own = ops::conv_forward(x, w, {}, {.format = MemoryFormat::channels_last});
    CHECK(own.memory_format() == MemoryFormat::channels_last);
  }
}

TEST_CASE("a convolution's precision is the call's, else the policy's, else the scope's", "[conv]") {
  CHECK(problem_with(float32, {}).precision == Precision::highest);
  CHECK(problem_with(float32, {.precision = Precision::medium}).precision == Precision::medium);
  {
    const PrecisionScope scope(Precision::high);
    CHECK(problem_with(float32, {}).precision == Precision::high);
    const ConvPolicy policy{{.precision = Precision::medium}};
    CHECK(problem_with(float32, {}).precision == Precision::medium);
    CHECK(problem_with(float32, {.precision = Precision::highest}).precision == Precision::highest);
  }
  CHECK(problem_with(float32, {}).precision == Precision::highest);
}

TEST_CASE("convolutions of different precision are different problems", "[conv]") {
  CHECK(problem_with(float32, {.precision = Precision::high}) != problem_with(float32, {}));
  // Other types than float32 have one precision only.
  for (const DType dtype : {float64, float16, bfloat16})
    CHECK(problem_with(dtype, {.precision = Precision::high}) == problem_with(dtype, {}));
}
