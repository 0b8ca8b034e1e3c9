// What functions ask of a GPU, counted in nvcc's PTX: instructions and bytes an element, against the least.
//   cuda_ptx_count [--match REGEX] [--kernels] [--registers FILE] [--expected FILE] [--write FILE]
// --kernels: what each kernel executed, under each row; with --registers also how many of its warps a
// multiprocessor has room for (FILE: what `tests/local_memory.py LIBRARY --registers` prints).
// --expected: fails where a row asks for more than FILE has. --write: writes such a file.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "pleat/pleat.h"
#include "pleat/tests/cuda_double/ptx/counts.h"

using namespace pleat;
namespace ptx = cuda_double::ptx;

namespace {

using Tensors = std::vector<Tensor>;

// Of an H100 SXM (data sheet): 132 multiprocessors of 4 schedulers at 1.755 GHz, and 3.35 TB/s of memory.
constexpr double warp_instructions_per_second = 132 * 4 * 1.755e9, bytes_per_second = 3.35e12;

struct Setting {
  DType dtype;
  MemoryFormat format;

  Tensor images(const Shape& shape) const { return to_format(randn(shape), format).to(dtype).to("cuda"); }
  Tensor rows(const Shape& shape) const { return randn(shape).to(dtype).to("cuda"); }
};

/// A function of tensors, the first of which are differentiated.
struct Call {
  Tensors inputs;
  std::function<Tensors(const Tensors&)> function;
  int differentiated = 1;
  /// Where inputs and results are not what kernels here move: elements and bytes, forward and backward.
  std::array<double, 2> elements = {}, least_bytes = {};
};
struct Row {
  std::string name;
  bool of_images;  ///< also in channels_last
  Call (*make)(const Setting&);
};

/// Of a function of one tensor.
template <class F>
std::function<Tensors(const Tensors&)> unary(F f) {
  return [f](const Tensors& x) { return Tensors{f(x[0])}; };
}

const Shape image_shape = {4, 32, 24, 24}, row_shape = {96, 1000};

/// A convolution [images, channels, size, size] by 3x3 filters, as matrices of the windows. What is counted
/// is the making of these (one for the result, two for the gradients): cuBLAS multiplies them.
Call unfolded(const Setting& s, int64_t images, int64_t channels, int64_t size, int64_t filters) {
  const auto run = [](const Tensors& x) {
    return Tensors{conv2d(x[0], x[1], {}, {.padding = 1, .implementation = "unfold"})};
  };
  const double pixels = static_cast<double>(images * size * size);
  const auto bytes = static_cast<double>(size_of(s.dtype));
  const double x = pixels * static_cast<double>(channels), y = pixels * static_cast<double>(filters);
  return {{s.images({images, channels, size, size}), s.images({filters, channels, 3, 3})},
          run,
          2,
          {9 * x, 9 * (x + y)},
          {10 * x * bytes, 10 * (x + y) * bytes}};
}

/// A convolution by 3x3 (x3) filters that is not its own transposed one, with a bias. What is moved least: x
/// is read and U written, which has `columns` elements; backward, that twice, the one for dx being read as
/// sums of float32.
Call unfolded_by(const Setting& s, const Shape& x, const Shape& w, const ConvOptions& options,
                 double columns) {
  const auto run = [options](const Tensors& t) {
    ConvOptions by_unfold = options;
    by_unfold.implementation = "unfold";
    return Tensors{t[0].rank() == 5 ? conv3d(t[0], t[1], t[2], by_unfold)
                                    : conv2d(t[0], t[1], t[2], by_unfold)};
  };
  const Tensor images = s.images(x);
  const auto bytes = static_cast<double>(size_of(s.dtype)), elements = static_cast<double>(images.numel());
  return {{images, s.images(w), s.rows({w[0]})},
          run,
          3,
          {columns, 2 * columns},
          {(elements + columns) * bytes, (2 * elements + columns) * bytes + columns * 4}};
}

/// `states`: bytes of an element's state, which is read and written as the parameter is.
template <class Optimizer, class Options>
Call step_of(const Setting& s, const Options& options, double states) {
  const Tensor p = s.rows({100'000});
  p.set_requires_grad(true);
  p.set_grad(s.rows({100'000}));
  auto optimizer = std::make_shared<Optimizer>(Tensors{p}, options);
  optimizer->step();  // which makes its states
  Tensors all = {p, p.grad()};
  const auto run = [optimizer](const Tensors& x) { return optimizer->step(), Tensors{x[0]}; };
  return {all, run, 0, {}, {1e5 * (3. * static_cast<double>(size_of(s.dtype)) + 2 * states)}};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"add", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape), s.images(image_shape)},
                     [](const Tensors& x) { return Tensors{x[0] + x[1]}; },
                     2};
       }},
      {"add of a bias", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape), s.rows({32, 1, 1})},
                     [](const Tensors& x) { return Tensors{x[0] + x[1]}; },
                     2};
       }},
      {"add of a row", false,
       [](const Setting& s) {
         return Call{
             {s.rows(row_shape), s.rows({1000})}, [](const Tensors& x) { return Tensors{x[0] + x[1]}; }, 2};
       }},
      {"multiply by a column", false,
       [](const Setting& s) {
         return Call{
             {s.rows(row_shape), s.rows({96, 1})}, [](const Tensors& x) { return Tensors{x[0] * x[1]}; }, 2};
       }},
      {"add of a part", false,
       [](const Setting& s) {
         const Tensor x = s.rows({96, 2000});
         return Call{{narrow(x, 1, 0, 1000), narrow(x, 1, 1000, 1000)},
                     [](const Tensors& y) { return Tensors{y[0] + y[1]}; },
                     0};
       }},
      {"relu", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) { return relu(x); })};
       }},
      {"gelu", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)}, unary([](auto& x) { return gelu(x); })};
       }},
      {"silu", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)}, unary([](auto& x) { return silu(x); })};
       }},
      {"where", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape), s.rows(row_shape), s.rows(row_shape) > 0},
                     [](const Tensors& x) { return Tensors{where(x[2], x[0], x[1])}; },
                     2};
       }},
      {"cast to float32", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)},
                     unary([](auto& x) { return x.to(x.dtype() == float32 ? float16 : float32); })};
       }},
      {"to the other format", true,
       [](const Setting& s) {
         const MemoryFormat other =
             s.format == MemoryFormat::contiguous ? MemoryFormat::channels_last : MemoryFormat::contiguous;
         return Call{{s.images(image_shape)}, unary([other](auto& x) { return to_format(x, other); })};
       }},
      {"transposed copy", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)}, unary([](auto& x) { return transpose(x, 0, 1).contiguous(); })};
       }},
      {"cat", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape), s.images(image_shape)},
                     [](const Tensors& x) { return Tensors{cat(x, 1)}; },
                     2};
       }},
      {"pad", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) { return pad(x, {1, 1, 1, 1}); })};
       }},
      {"pad, reflecting", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) {
                       return pad(x, {1, 1, 1, 1}, {.mode = PadMode::reflect});
                     })};
       }},
      {"sum of all", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) { return sum(x); })};
       }},
      {"sum over images", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) { return sum(x, {0, 2, 3}); })};
       }},
      {"mean of rows", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)}, unary([](auto& x) { return mean(x, -1); })};
       }},
      {"mean of columns", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)}, unary([](auto& x) { return mean(x, 0); })};
       }},
      {"max of rows", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)}, unary([](auto& x) { return max(x, -1); })};
       }},
      {"var of rows", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)}, unary([](auto& x) { return var(x, -1); })};
       }},
      {"cumsum of rows", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)}, unary([](auto& x) { return cumsum(x, -1); })};
       }},
      {"softmax of rows", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)}, unary([](auto& x) { return softmax(x, -1); })};
       }},
      {"softmax of rows of 10", false,
       [](const Setting& s) {
         return Call{{s.rows({9600, 10})}, unary([](auto& x) { return softmax(x, -1); })};
       }},
      {"log_softmax of channels", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) { return log_softmax(x, 1); })};
       }},
      {"softmax of channels", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) { return softmax(x, 1); })};
       }},
      {"batch_norm", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape), ones({32}).to("cuda"), zeros({32}).to("cuda")},
                     [](const Tensors& x) {
                       return Tensors{batch_norm(x[0], x[1], x[2], {}, {},
                                                 {.training = true, .implementation = "native"})};
                     },
                     3};
       }},
      {"batch_norm after a residual, relu", true,
       [](const Setting& s) {
         const Tensor parameter = ones({32}).to("cuda");
         return Call{
             {s.images(image_shape), s.images(image_shape), parameter, parameter},
             [](const Tensors& x) {
               return Tensors{batch_norm(
                   x[0], x[2], x[3], {}, {},
                   {.training = true, .residual = x[1], .bounds = {.min = 0}, .implementation = "native"})};
             },
             4};
       }},
      {"instance_norm", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape), s.rows({32}), s.rows({32})},
                     [](const Tensors& x) { return Tensors{instance_norm(x[0], x[1], x[2], {}, {})}; },
                     3};
       }},
      {"group_norm", true,
       [](const Setting& s) {
         return Call{
             {s.images(image_shape), s.rows({32}), s.rows({32})},
             [](const Tensors& x) { return Tensors{group_norm(x[0], x[1], x[2], {.num_groups = 8})}; },
             3};
       }},
      {"layer_norm", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape), s.rows({1000}), s.rows({1000})},
                     [](const Tensors& x) {
                       return Tensors{layer_norm(x[0], x[1], x[2], {.normalized_shape = 1000})};
                     },
                     3};
       }},
      {"rms_norm", false,
       [](const Setting& s) {
         return Call{
             {s.rows(row_shape), s.rows({1000})},
             [](const Tensors& x) { return Tensors{rms_norm(x[0], x[1], {.normalized_shape = 1000})}; },
             2};
       }},
      {"max_pool2d of 2", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)},
                     unary([](auto& x) { return max_pool2d(x, {.kernel_size = 2}); })};
       }},
      {"max_pool2d of 3, stride 2", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) {
                       return max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1});
                     })};
       }},
      {"avg_pool2d of 2", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)},
                     unary([](auto& x) { return avg_pool2d(x, {.kernel_size = 2}); })};
       }},
      {"avg_pool2d of 3, stride 1", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) {
                       return avg_pool2d(x, {.kernel_size = 3, .stride = 1, .padding = 1});
                     })};
       }},
      {"lp_pool2d of 2", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)},
                     unary([](auto& x) { return lp_pool2d(x, {.norm_type = 2, .kernel_size = 2}); })};
       }},
      {"max_unpool2d of 2", true,
       [](const Setting& s) {
         const auto [values, places] = max_pool_with_indices(s.images(image_shape), {.kernel_size = 2});
         return Call{{values, places},
                     [](const Tensors& x) { return Tensors{max_unpool2d(x[0], x[1], {.kernel_size = 2})}; }};
       }},
      {"adaptive_max_pool2d to 7", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)},
                     unary([](auto& x) { return adaptive_max_pool2d(x, {.output_size = 7}); })};
       }},
      {"adaptive_avg_pool2d to 7", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)},
                     unary([](auto& x) { return adaptive_avg_pool2d(x, {.output_size = 7}); })};
       }},
      {"adaptive_avg_pool2d to 1", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)},
                     unary([](auto& x) { return adaptive_avg_pool2d(x, {.output_size = 1}); })};
       }},
      {"interpolate, nearest", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)},
                     unary([](auto& x) { return interpolate(x, {.scale_factor = 2}); })};
       }},
      {"interpolate, linear", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) {
                       return interpolate(x, {.scale_factor = 2, .mode = Interpolation::linear});
                     })};
       }},
      {"interpolate, cubic", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) {
                       return interpolate(x, {.scale_factor = 2, .mode = Interpolation::cubic});
                     })};
       }},
      {"interpolate, area, by half", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape)}, unary([](auto& x) {
                       return interpolate(x, {.scale_factor = 0.5, .mode = Interpolation::area});
                     })};
       }},
      {"grid_sample", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape), s.rows({4, 24, 24, 2})},
                     [](const Tensors& x) { return Tensors{grid_sample(x[0], x[1])}; },
                     2};
       }},
      {"roi_align to 7", true,
       [](const Setting& s) {
         const Tensor boxes =
             from_vector(std::vector<float>{0, 1, 2, 20, 21, 1, 3, 4, 12, 23, 3, 0, 0, 23, 12}, {3, 5})
                 .to(s.dtype)
                 .to("cuda");
         return Call{{s.images(image_shape), boxes},
                     [](const Tensors& x) { return Tensors{roi_align(x[0], x[1], {.output_size = 7})}; }};
       }},
      {"unfold of 3", false,
       [](const Setting& s) {
         return Call{{s.images({2, 16, 24, 24})},
                     unary([](auto& x) { return unfold(x, {.kernel_size = 3, .padding = 1}); })};
       }},
      {"conv2d by unfold", true, [](const Setting& s) { return unfolded(s, 4, 16, 24, 32); }},
      {"conv2d of 3 channels by unfold", true, [](const Setting& s) { return unfolded(s, 16, 3, 32, 16); }},
      {"conv2d of 512 patches by unfold", true, [](const Setting& s) { return unfolded(s, 512, 32, 4, 32); }},
      {"conv2d of stride 2 by unfold", true,
       [](const Setting& s) {
         return unfolded_by(s, {8, 32, 32, 32}, {32, 32, 3, 3}, {.stride = 2, .padding = 1},
                            8. * 32 * 9 * 256);
       }},
      {"conv2d of 4 groups and stride 2 by unfold", true,
       [](const Setting& s) {
         return unfolded_by(s, {8, 32, 32, 32}, {32, 8, 3, 3}, {.stride = 2, .padding = 1, .groups = 4},
                            8. * 32 * 9 * 256);
       }},
      {"conv3d of stride 2 by unfold", true,
       [](const Setting& s) {
         return unfolded_by(s, {2, 8, 16, 16, 16}, {16, 8, 3, 3, 3}, {.stride = 2, .padding = 1},
                            2. * 8 * 27 * 512);
       }},
      {"depthwise conv2d", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape), s.images({32, 1, 3, 3})},
                     [](const Tensors& x) {
                       return Tensors{
                           conv2d(x[0], x[1], {}, {.padding = 1, .groups = 32, .implementation = "direct"})};
                     },
                     2};
       }},
      {"depthwise conv2d of stride 2", true,
       [](const Setting& s) {
         return Call{
             {s.images(image_shape), s.images({32, 1, 3, 3}), s.rows({32})},
             [](const Tensors& x) {
               return Tensors{conv2d(x[0], x[1], x[2],
                                     {.stride = 2, .padding = 1, .groups = 32, .implementation = "direct"})};
             },
             3};
       }},
      {"cross_entropy", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape), randint(0, 1000, {96}).to("cuda")}, [](const Tensors& x) {
                       return Tensors{cross_entropy(x[0], x[1], {.check_target = false})};
                     }};
       }},
      {"cross_entropy of pixels", true,
       [](const Setting& s) {
         return Call{{s.images(image_shape), randint(0, 32, {4, 24, 24}).to("cuda")}, [](const Tensors& x) {
                       return Tensors{cross_entropy(x[0], x[1], {.check_target = false})};
                     }};
       }},
      {"cross_entropy of 10 classes", false,
       [](const Setting& s) {
         return Call{{s.rows({9600, 10}), randint(0, 10, {9600}).to("cuda")}, [](const Tensors& x) {
                       return Tensors{cross_entropy(x[0], x[1], {.check_target = false})};
                     }};
       }},
      {"nll_loss", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape), randint(0, 1000, {96}).to("cuda")},
                     [](const Tensors& x) { return Tensors{nll_loss(x[0], x[1])}; }};
       }},
      {"mse_loss", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape), s.rows(row_shape)},
                     [](const Tensors& x) { return Tensors{mse_loss(x[0], x[1])}; }};
       }},
      {"bce_with_logits", false,
       [](const Setting& s) {
         return Call{{s.rows({60, 1000}), s.rows({60, 1000})},
                     [](const Tensors& x) { return Tensors{bce_with_logits(x[0], x[1])}; }};
       }},
      {"binary_cross_entropy", false,
       [](const Setting& s) {
         return Call{{sigmoid(s.rows({60, 1000})), sigmoid(s.rows({60, 1000}))},
                     [](const Tensors& x) { return Tensors{binary_cross_entropy(x[0], x[1])}; }};
       }},
      {"sigmoid_focal_loss, mean", false,
       [](const Setting& s) {
         return Call{{s.rows({60, 1000}), sigmoid(s.rows({60, 1000}))}, [](const Tensors& x) {
                       return Tensors{sigmoid_focal_loss(x[0], x[1], {.reduction = Reduction::mean})};
                     }};
       }},
      {"smooth_l1_loss", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape), s.rows(row_shape)},
                     [](const Tensors& x) { return Tensors{smooth_l1_loss(x[0], x[1])}; }};
       }},
      {"kl_div", false,
       [](const Setting& s) {
         return Call{{s.rows({60, 1000}), exp(s.rows({60, 1000}))},
                     [](const Tensors& x) { return Tensors{kl_div(x[0], x[1])}; }};
       }},
      {"embedding", false,
       [](const Setting& s) {
         return Call{{s.rows({500, 64}), randint(0, 500, {1500}).to("cuda")},
                     [](const Tensors& x) { return Tensors{embedding(x[1], x[0])}; }};
       }},
      {"embedding, half of it padding", false,
       [](const Setting& s) {
         return Call{{s.rows({500, 64}), clamp(randint(-500, 500, {1500}), 0, 499).to("cuda")},
                     [](const Tensors& x) { return Tensors{embedding(x[1], x[0])}; }};
       }},
      {"dropout", false,
       [](const Setting& s) {
         return Call{{s.rows(row_shape)}, unary([](auto& x) { return dropout(x, 0.5); })};
       }},
      {"SGD with momentum", false,
       [](const Setting& s) {
         return step_of<optim::SGD>(s, optim::SGDOptions{.lr = 0.1, .momentum = 0.9}, 4);
       }},
      {"Adam", false, [](const Setting& s) { return step_of<optim::Adam>(s, optim::AdamOptions{}, 8); }},
  };
  return all;
}

double bytes_of(const Tensors& all) {
  double bytes = 0;
  for (const Tensor& x : all)
    if (x.defined()) bytes += static_cast<double>(x.numel() * size_of(x.dtype()));
  return bytes;
}
double most_elements(const Tensors& all) {
  int64_t most = 1;
  for (const Tensor& x : all) most = std::max(most, x.defined() ? x.numel() : 0);
  return static_cast<double>(most);
}

/// What a row comes to.
struct Figures {
  double launches = 0, instructions = 0, sectors = 0, accesses = 0, conflicts = 0;
  double elements = 0, least_bytes = 0;

  /// The longest of what each kernel takes for its instructions and for its bytes, on an idle H100 whose
  /// memory is kept busy; a launch is free.
  double microseconds = 0;

  double allocated = 0;  ///< bytes asked of the GPU's memory at most at once, results among them

  double per_element() const { return instructions / elements; }
  double bytes_per_element() const { return 32 * sectors / elements; }
  double of_least() const { return 32 * sectors / least_bytes; }
  /// How many times as long the instructions take as the least bytes.
  double of_memory_bound() const {
    return (instructions / 32 / warp_instructions_per_second) / (least_bytes / bytes_per_second);
  }
};

Figures figures_of(const Tensors& read, const Tensors& written, double elements, double least_bytes) {
  Figures f;
  for (const ptx::KernelCount& each : ptx::kernel_counts()) {
    f.launches += static_cast<double>(each.launches);
    double warps = 0;
    for (const uint64_t some : each.warp_instructions) warps += static_cast<double>(some);
    f.instructions += 32 * warps;
    f.microseconds += 1e6 * std::max(warps / warp_instructions_per_second,
                                     32 * static_cast<double>(each.sectors) / bytes_per_second);
    f.sectors += static_cast<double>(each.sectors);
    f.accesses += static_cast<double>(each.shared_accesses);
    f.conflicts += static_cast<double>(each.conflicts);
  }
  Tensors all = read;
  all.insert(all.end(), written.begin(), written.end());
  f.least_bytes = least_bytes > 0 ? least_bytes : bytes_of(all);
  f.elements = elements > 0 ? elements : most_elements(all);
  return f;
}

std::string header() {
  return "instructions  of memory's       bytes  of the            conflicts  microseconds    allocated\n"
         "  an element         time  an element   least  launches  an access      at least   an element  "
         "row\n";
}
std::string line_of(const std::string& title, const Figures& f) {
  char text[200];
  std::snprintf(text, sizeof text, "%12.1f %12.2f %11.1f %7.2f %9.0f %10.3f %13.3f %12.1f  ", f.per_element(),
                f.of_memory_bound(), f.bytes_per_element(), f.of_least(), f.launches,
                f.accesses == 0 ? 0 : f.conflicts / f.accesses, f.microseconds, f.allocated / f.elements);
  return text + title + '\n';
}

/// Of a file of lines "instructions bytes launches title".
std::map<std::string, std::array<double, 3>> read_expected(const std::string& file) {
  std::map<std::string, std::array<double, 3>> expected;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::array<double, 3> numbers{};
    std::string title;
    if (line.starts_with('#') || !(words >> numbers[0] >> numbers[1] >> numbers[2])) continue;
    std::getline(words >> std::ws, title);
    expected[title] = numbers;
  }
  return expected;
}

/// Of a file of lines "registers blocks frame kernel".
std::map<std::string, uint64_t> read_registers(const std::string& file) {
  std::map<std::string, uint64_t> registers;
  std::ifstream in(file);
  if (!file.empty() && !in) std::cerr << "cannot read " << file << '\n', std::exit(2);
  uint64_t count = 0, blocks = 0, frame = 0;
  for (std::string name; in >> count >> blocks >> frame && std::getline(in >> std::ws, name);)
    registers[name] = count;
  return registers;
}

class Table {
 public:
  Table(const std::string& match, bool kernels, const std::string& registers)
      : match_(match), kernels_(kernels), registers_(read_registers(registers)) {}

  void add(const Row& row, const Setting& s) {
    const std::string setting =
        std::string(name(s.dtype)) + (!row.of_images                         ? ""
                                      : s.format == MemoryFormat::contiguous ? ", NCHW"
                                                                             : ", NHWC");
    const std::string forward = row.name + ", " + setting, backward = row.name + ", backward, " + setting;
    const bool wants_forward = std::regex_search(forward, match_),
               wants_backward = std::regex_search(backward, match_);
    if (!wants_forward && !wants_backward) return;
    manual_seed(1);
    Call call = row.make(s);
    Tensors leaves(call.inputs.begin(), call.inputs.begin() + call.differentiated);
    for (Tensor& x : leaves) x = x.detach();
    for (std::size_t i = 0; i < leaves.size(); ++i) call.inputs[i] = leaves[i];
    for (const Tensor& x : leaves) x.set_requires_grad(true);
    count([&] { return call.function(call.inputs); }, call.inputs, wants_forward ? forward : "", call, 0);
    if (leaves.empty() || !wants_backward) return;
    const Tensors y = call.function(call.inputs);
    Tensors dy;
    for (const Tensor& each : y)
      dy.push_back(randn(each.shape(), {.dtype = each.dtype(), .device = "cuda"}).to(each.memory_format()));
    Tensors read = call.inputs;
    read.insert(read.end(), dy.begin(), dy.end());
    count(
        [&] {
          const Grads all = grad(y, leaves, Grads(dy.begin(), dy.end()));
          return Tensors(all.begin(), all.end());
        },
        read, backward, call, 1);
  }

  const std::map<std::string, Figures>& figures() const { return figures_; }

 private:
  template <class F>
  void count(const F& run, const Tensors& read, const std::string& title, const Call& call,
             std::size_t pass) {
    const Device gpu = "cuda";
    cuda::synchronize();
    ptx::reset_kernel_counts();
    reset_peak_statistics(gpu);
    const int64_t before = allocator_statistics(gpu).allocated;
    const Tensors written = run();
    cuda::synchronize();
    if (title.empty()) return;
    Figures f = figures_of(read, written, call.elements[pass], call.least_bytes[pass]);
    f.allocated = static_cast<double>(allocator_statistics(gpu).peak - before);
    figures_[title] = f;
    std::cout << line_of(title, f) << std::flush;
    if (kernels_) std::cout << ptx::table_of(ptx::kernel_counts(), registers_) << '\n';
  }

  std::regex match_;
  bool kernels_;
  std::map<std::string, uint64_t> registers_;
  std::map<std::string, Figures> figures_;
};

/// `all`: no row was left out, so that the file must not have others.
int compare(const std::map<std::string, Figures>& figures, const std::string& file, bool all) {
  const auto expected = read_expected(file);
  int wrong = 0;
  for (const auto& [title, numbers] : expected)
    if (all && figures.count(title) == 0) {
      std::cout << "not counted any more: " << title << '\n';
      ++wrong;
    }
  for (const auto& [title, f] : figures) {
    const auto at = expected.find(title);
    if (at == expected.end()) {
      std::cout << "no figures of: " << title << '\n';
      ++wrong;
      continue;
    }
    const std::array<double, 3> now = {f.per_element(), f.bytes_per_element(), f.launches};
    for (std::size_t i = 0; i < now.size(); ++i)
      if (now[i] > at->second[i] * 1.01 + 0.06) {
        const char* const what[] = {"instructions an element", "bytes an element", "launches"};
        std::cout << title << ": " << now[i] << ' ' << what[i] << ", " << at->second[i] << " are expected\n";
        ++wrong;
      }
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  bool kernels = false;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--kernels")
      kernels = true;
    else if ((name == "--match" || name == "--registers" || name == "--expected" || name == "--write") &&
             i + 1 < argc)
      options[name] = argv[++i];
    else
      return std::cerr
                 << "usage: " << argv[0]
                 << " [--match REGEX] [--kernels] [--registers FILE] [--expected FILE] [--write FILE]\n",
             2;
  }
  ptx::start_counting();
  std::cout << header();
  Table table(options["--match"], kernels, options["--registers"]);
  for (const Row& row : rows())
    for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last})
      for (const DType dtype : {float32, float16, bfloat16})
        if (format == MemoryFormat::contiguous || row.of_images) table.add(row, {dtype, format});
  if (const std::string file = options["--write"]; !file.empty()) {
    std::ofstream out(file);
    out << "# " NVCC
           ": instructions an element, bytes an element and launches of each row, by cuda_ptx_count "
           "--write.\n";
    for (const auto& [title, f] : table.figures()) {
      char text[64];
      std::snprintf(text, sizeof text, "%.1f %.1f %.0f ", f.per_element(), f.bytes_per_element(), f.launches);
      out << text << title << '\n';
    }
  }
  const std::string expected = options["--expected"];
  return expected.empty() ? 0 : compare(table.figures(), expected, options["--match"].empty());
}
