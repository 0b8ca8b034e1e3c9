#include "pleat/ops/quantized/quantized_conv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/memory/allocate_array.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/call.h"

namespace pleat::ops {
namespace {

constexpr int64_t slack = 64;  ///< bytes that kernels read beyond what they use

constexpr std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

Quantization Quantization::of(double least, double most) {
  least = std::min(least, 0.0);
  most = std::max(most, 0.0);
  Quantization q;
  if (const auto scale = static_cast<float>((most - least) / 255); std::isnormal(scale)) q.scale = scale;
  q.zero = static_cast<int32_t>(std::clamp(std::nearbyint(-least / q.scale), 0.0, 255.0));
  return q;
}

/// A convolution as it is computed: of lines (the outermost dimension that is not 1) of rows of pixels.
struct QuantizedConv::Windows {
  int64_t batch = 1;
  Spatial input{1, 1, 1}, output{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, low{0, 0, 0}, high{0, 0, 0},
      dilation{1, 1, 1};
  int64_t images = 1, lines = 1;  ///< computed together; of several images all lines

  bool is_padded() const { return low != Spatial{} || high != Spatial{}; }
  int64_t pixels_of_line() const { return output[1] * output[2]; }
  int64_t chunks() const { return ceil_div(batch, images) * ceil_div(output[0], lines); }
};

struct QuantizedConv::Chunk {
  const Windows& windows;
  const Tensor &x, &addend, &y;
  int64_t index;
  int64_t first_column, columns;
};

QuantizedConv::QuantizedConv(const Tensor& weight, const Tensor& bias, const ConvOptions& options,
                             const Quantization& x, const QuantizedFinish& finish, SharedBlocks& shared,
                             const U8S8Kernels& kernels)
    : kernels_(kernels),
      options_(options),
      weight_shape_(weight.shape()),
      like_(empty({1}, {.dtype = weight.dtype(), .device = weight.device()})),
      x_(x),
      finish_(finish),
      is_linear_(weight.rank() == 2) {
  const int64_t depth = weight.numel() / std::max<int64_t>(1, weight.size(0));
  check<ValueError>(sums_fit(depth), "int8: sums of {} products do not fit into int32; leave this in float32",
                    depth);
  check<ShapeError>(options.groups >= 1 && weight.numel() > 0 && weight.size(0) % options.groups == 0 &&
                        (!bias.defined() || bias.shape() == Shape{weight.size(0)}),
                    "int8: a weight {} and a bias {} do not fit {} groups", weight, bias,
                    int64_t{options.groups});
  lay_out(weight.numel());
  const int64_t bytes = 12 * columns_ + b_size_;
  packed_ = shared.prepared(bytes, [&] {
    std::shared_ptr<std::byte> memory = allocate(bytes);
    pack(to_format(weight, MemoryFormat::contiguous), bias, x, memory.get());
    return memory;
  });
}

/// Finds groups and segments, and how much there is of all.
void QuantizedConv::lay_out(int64_t weights) {
  const int64_t given_groups = options_.groups, group_in = weight_shape_[1];
  out_channels_ = weight_shape_[0];
  in_channels_ = group_in * given_groups;
  const int64_t group_out = out_channels_ / given_groups;
  taps_ = weights / (out_channels_ * group_in);
  is_depthwise_ = given_groups > 1 && group_in == 1 && group_out == 1;
  groups_ = given_groups;
  if (!is_depthwise_)  // as many as a strip has columns for
    for (int64_t together = strip_columns / group_out; together > 1; --together)
      if (given_groups % together == 0) {
        groups_ = given_groups / together;
        break;
      }
  const int64_t columns = is_depthwise_ ? out_channels_ : out_channels_ / groups_;
  const int64_t inside = is_depthwise_ ? 1 : in_channels_ / groups_;
  column_step_ = round_up(columns, strip_columns);
  if (!is_linear_ && !is_depthwise_ && groups_ == 1 &&
      options_.dilation
              .expand(static_cast<int64_t>(weight_shape_.size()) - 2, conv_name(weight_shape_), "dilation")
              .back() == 1)
    segment_taps_ = weight_shape_.back();
  columns_ = (is_depthwise_ ? 1 : groups_) * column_step_ + slack;
  if (is_depthwise_)
    for (int64_t first = 0; first < out_channels_;) {
      const int64_t block = depthwise_block(out_channels_ - first, kernels_.widest_block);
      b_size_ += block * round_up(taps_, 4);
      first += block;
    }
  else
    b_size_ = groups_ * column_step_ * (taps_ / segment_taps_) * round_up(segment_taps_ * inside, 4);
}

void QuantizedConv::pack(const Tensor& weight, const Tensor& bias, const Quantization& x,
                         std::byte* memory) const {
  const int64_t group_in = weight_shape_[1], group_out = out_channels_ / options_.groups, taps = taps_;
  const int64_t columns = is_depthwise_ ? out_channels_ : out_channels_ / groups_;
  const int64_t inside = is_depthwise_ ? 1 : in_channels_ / groups_;
  auto* const start = reinterpret_cast<int32_t*>(memory);
  auto* const scales = reinterpret_cast<float*>(start + columns_);
  float* const column_shifts = scales + columns_;
  auto* to = reinterpret_cast<int8_t*>(column_shifts + columns_);
  std::fill_n(start, columns_, 0);
  std::fill_n(scales, 2 * columns_, 0.0F);
  std::vector<int8_t> q(at(weight.numel()));
  const auto* const w = weight.data<float>();
  const Tensor dense_bias = bias.defined() ? to_format(bias, MemoryFormat::contiguous) : bias;
  const float* const shifts = bias.defined() ? dense_bias.data<float>() : nullptr;
  const int64_t depth = group_in * taps;
  for (int64_t k = 0; k < out_channels_; ++k) {
    const float* const row = w + k * depth;
    float largest = 0;
    for (int64_t i = 0; i < depth; ++i) {
      check<ValueError>(std::isfinite(row[i]), "int8: a weight is {}", double{row[i]});
      largest = std::max(largest, std::abs(row[i]));
    }
    const float scale = std::isnormal(largest / 127) ? largest / 127 : 1;
    int32_t sum = 0;
    for (int64_t i = 0; i < depth; ++i) {
      const auto value = static_cast<int8_t>(std::clamp(std::nearbyint(row[i] / scale), -127.0F, 127.0F));
      q[at(k * depth + i)] = value;
      sum += value;
    }
    const std::size_t place = at(k / columns * column_step_ + k % columns);
    const bool in_units_of_y = finish_.y && finish_.f == nullptr;
    const double unit = in_units_of_y ? finish_.y->scale : 1.0;
    double shift = shifts == nullptr ? 0.0 : shifts[k];
    if (finish_.addend) shift -= double{finish_.addend->scale} * finish_.addend->zero;
    start[place] = -x.zero * sum;
    scales[place] = static_cast<float>(double{x.scale} * scale / unit);
    column_shifts[place] = static_cast<float>(shift / unit + (in_units_of_y ? finish_.y->zero : 0));
  }

  const auto weight_at = [&](int64_t k, int64_t c, int64_t tap) -> int8_t {  // c of all channels
    const int64_t own = c - k / group_out * group_in;
    return own < 0 || own >= group_in ? int8_t{0} : q[at((k * group_in + own) * taps + tap)];
  };
  if (is_depthwise_) {
    for (int64_t first = 0; first < out_channels_;) {
      const int64_t block = depthwise_block(out_channels_ - first, kernels_.widest_block);
      for (int64_t t = 0; t < taps; t += 4)
        for (int64_t i = 0; i < block; ++i)
          for (int64_t j = 0; j < 4; ++j) {
            const int64_t k = first + interleaved_channel(i, block);
            *to++ = k < out_channels_ && t + j < taps ? weight_at(k, k, t + j) : int8_t{0};
          }
      first += block;
    }
    return;
  }
  const int64_t length = segment_taps_ * inside;
  for (int64_t group = 0; group < groups_; ++group)
    for (int64_t strip = 0; strip < columns; strip += strip_columns)
      for (int64_t tap = 0; tap < taps; tap += segment_taps_)
        for (int64_t first = 0; first < length; first += 4)
          for (int64_t n = strip; n < strip + strip_columns; ++n)
            for (int64_t e = first; e < first + 4; ++e)
              *to++ = n < columns && e < length
                          ? weight_at(group * columns + n, group * inside + e % inside, tap + e / inside)
                          : int8_t{0};
}

QuantizedConv::Windows QuantizedConv::windows_of(const Tensor& x, Shape& output) const {
  constexpr int64_t wanted_pixels = 128;
  constexpr int64_t least_lines = 8;  // neighbours read some of the same lines
  Windows w;
  bool is_pointwise = is_linear_;
  if (is_linear_) {
    check<ShapeError>(x.rank() > 0 && x.shape().back() == in_channels_, "linear: needs [..., {}], got {}",
                      in_channels_, x.shape());
    output = x.shape();
    output.back() = out_channels_;
    w.output[0] = w.input[0] = x.numel() / in_channels_;
  } else {
    const ConvOperand weight("weight", weight_shape_, like_), input("input", x.shape(), like_);
    const auto dims = static_cast<int>(weight_shape_.size()) - 2;
    const ConvProblem p = make_conv_problem(conv_name(weight_shape_), dims, input, weight, options_);
    output = p.output_shape();
    w = {.batch = p.batch,
         .input = p.input,
         .output = p.output,
         .kernel = p.kernel,
         .stride = p.stride,
         .low = p.padding_low,
         .high = p.padding_high,
         .dilation = p.dilation};
    is_pointwise = p.is_pointwise(0) && p.is_pointwise(1) && p.is_pointwise(2) && !is_depthwise_;
    if (is_pointwise)
      w = {.input{p.batch * p.input_pixels(), 1, 1}, .output{p.batch * p.output_pixels(), 1, 1}};
    if (w.input[0] == 1 && w.output[0] == 1 && w.kernel[0] == 1)
      for (Spatial* const sizes : {&w.input, &w.output, &w.kernel, &w.stride, &w.low, &w.high, &w.dilation})
        std::swap((*sizes)[0], (*sizes)[1]);
  }
  const int64_t lines = ceil_div(wanted_pixels, std::max<int64_t>(1, w.pixels_of_line()));
  w.lines = std::clamp<int64_t>(is_pointwise ? lines : std::max(lines, least_lines), 1,
                                std::max<int64_t>(1, w.output[0]));
  if (w.lines == w.output[0])
    w.images = std::clamp<int64_t>(wanted_pixels / std::max<int64_t>(1, w.lines * w.pixels_of_line()), 1,
                                   std::max<int64_t>(1, w.batch));
  return w;
}

Tensor QuantizedConv::run(const Tensor& given, const Tensor& given_addend) const {
  const RecordOp range(is_linear_ ? "linear" : conv_name(weight_shape_), given);
  range.details([&] { return RangeDetails{.implementation = "int8"}; });
  const MemoryFormat format = is_linear_ ? MemoryFormat::contiguous : MemoryFormat::channels_last;
  const Tensor x = to_format(given, format);
  const Tensor addend = given_addend.defined() ? to_format(given_addend, format) : given_addend;
  Shape shape;
  const Windows windows = windows_of(x, shape);
  const Tensor y =
      empty(shape, {.dtype = finish_.y ? uint8 : float32, .device = x.device(), .format = format});
  if (y.numel() == 0) return y;
  constexpr int64_t part_columns = 256;
  constexpr int64_t least_products = 1 << 17;  // less is done before another thread wakes
  const int64_t chunks = windows.chunks();
  const bool in_parts = chunks == 1 && groups_ == 1;
  const int64_t parts = in_parts ? ceil_div(out_channels_, part_columns) : 1;
  const int64_t products = y.numel() / (chunks * parts) * (b_size_ / std::max<int64_t>(1, out_channels_));
  parallel_for(0, chunks * parts, std::max<int64_t>(1, least_products / std::max<int64_t>(1, products)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t column = in_parts ? i * part_columns : 0;
                   const int64_t columns =
                       in_parts ? std::min(part_columns, out_channels_ - column) : out_channels_;
                   run_chunk({windows, x, addend, y, in_parts ? 0 : i, column, columns});
                 }
               });
  return y;
}

/// Takes the chunk's lines of x into a block with its padding, unless they can be read where they lie.
void QuantizedConv::run_chunk(const Chunk& chunk) const {
  const Windows& w = chunk.windows;
  const int64_t bands = ceil_div(w.output[0], w.lines);
  const int64_t image = chunk.index / bands * w.images, images = std::min(w.images, w.batch - image);
  const int64_t line = chunk.index % bands * w.lines, lines = std::min(w.lines, w.output[0] - line);
  const int64_t channels = in_channels_;
  const int64_t first_in = line * w.stride[0] - w.low[0];
  const int64_t lines_in = (lines - 1) * w.stride[0] + (w.kernel[0] - 1) * w.dilation[0] + 1;

  const bool is_float = chunk.x.dtype() == float32;
  const int64_t segment = segment_taps_ * channels / groups_;
  const bool copies = is_float || w.is_padded() || is_depthwise_ || segment % 4 != 0;
  const int64_t pad_1 = copies ? w.low[1] + w.high[1] : 0, pad_2 = copies ? w.low[2] + w.high[2] : 0;
  const int64_t row_bytes = (w.input[2] + pad_2) * channels, line_bytes = (w.input[1] + pad_1) * row_bytes;
  const int64_t image_bytes = (copies ? lines_in : w.input[0]) * line_bytes;
  const std::shared_ptr<uint8_t> block =
      copies ? allocate_array<uint8_t>(images * image_bytes + slack) : nullptr;
  const uint8_t* from = block.get();
  if (!copies) {
    from = chunk.x.data<uint8_t>() + image * image_bytes + first_in * line_bytes;
  } else {
    const auto zero = static_cast<uint8_t>(x_.zero);
    uint8_t* to = block.get();
    const auto skip = [&](int64_t bytes) { to = std::fill_n(to, bytes, zero); };
    const int64_t pixels = w.input[2];
    const auto copy = [&](int64_t pixel, int64_t count) {
      if (is_float)
        kernels_.quantize(chunk.x.data<float>() + pixel * channels, count * channels, 1 / x_.scale,
                          static_cast<float>(x_.zero), to);
      else
        std::copy_n(chunk.x.data<uint8_t>() + pixel * channels, count * channels, to);
      to += count * channels;
    };
    for (int64_t n = image; n < image + images; ++n)
      if (!w.is_padded() && first_in + lines_in <= w.input[0]) {
        copy((n * w.input[0] + first_in) * w.input[1] * pixels, lines_in * w.input[1] * pixels);
      } else {
        for (int64_t i = first_in; i < first_in + lines_in; ++i) {
          if (i < 0 || i >= w.input[0]) {
            skip(line_bytes);
            continue;
          }
          skip(w.low[1] * row_bytes);
          for (int64_t j = 0; j < w.input[1]; ++j) {
            skip(w.low[2] * channels);
            copy(((n * w.input[0] + i) * w.input[1] + j) * pixels, pixels);
            skip(w.high[2] * channels);
          }
          skip(w.high[1] * row_bytes);
        }
      }
    std::fill_n(to, slack, zero);
  }

  std::vector<const uint8_t*> rows;
  rows.reserve(at(images * lines * w.pixels_of_line()));
  for (int64_t n = 0; n < images; ++n)
    for (int64_t i = 0; i < lines; ++i)
      for (int64_t j = 0; j < w.output[1]; ++j) {
        const uint8_t* const row =
            from + n * image_bytes + i * w.stride[0] * line_bytes + j * w.stride[1] * row_bytes;
        for (int64_t k = 0; k < w.output[2]; ++k) rows.push_back(row + k * w.stride[2] * channels);
      }
  constexpr int64_t rows_together = 128;  // stay in the first caches
  const int64_t first = (image * w.output[0] + line) * w.pixels_of_line();
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<int64_t> segments;
  for (int64_t i = 0; i < w.kernel[0]; ++i)
    for (int64_t j = 0; j < w.kernel[1]; ++j)
      for (int64_t k = 0; k < w.kernel[2]; k += segment_taps_)
        segments.push_back(i * w.dilation[0] * line_bytes + j * w.dilation[1] * row_bytes +
                           k * w.dilation[2] * channels);
  for (int64_t i = 0; i < count; i += rows_together)
    multiply(chunk, segments, rows.data() + i, std::min(rows_together, count - i), first + i);
}

/// Computes rows `first` ... of the result as a matrix [pixels, channels].
void QuantizedConv::multiply(const Chunk& chunk, const std::vector<int64_t>& segments,
                             const uint8_t* const* rows, int64_t count, int64_t first) const {
  const int64_t n = out_channels_, place = first * n + chunk.first_column;
  U8S8Finish finish{.start = start(),
                    .scale = scale(),
                    .shift = shift(),
                    .low = -std::numeric_limits<float>::infinity(),
                    .high = std::numeric_limits<float>::infinity(),
                    .addend_scale = 1,
                    .addend_row = n,
                    .y_row = n};
  const bool is_uint8 = finish_.y.has_value();
  std::shared_ptr<float> values;
  if (finish_.f == nullptr) {
    const double unit = is_uint8 ? finish_.y->scale : 1.0, zero = is_uint8 ? finish_.y->zero : 0.0;
    finish.low = static_cast<float>(finish_.bounds.min / unit + zero);
    finish.high = static_cast<float>(finish_.bounds.max / unit + zero);
    finish.addend_scale = static_cast<float>(1 / unit);
    if (is_uint8) {
      finish.low = std::clamp(finish.low, 0.0F, 255.0F);
      finish.high = std::clamp(finish.high, 0.0F, 255.0F);
      finish.uint8_y = chunk.y.data<uint8_t>() + place;
    } else {
      finish.float_y = chunk.y.data<float>() + place;
    }
  } else if (is_uint8) {
    values = allocate_array<float>(count * chunk.columns);
    finish.float_y = values.get();
    finish.y_row = chunk.columns;
  } else {
    finish.float_y = chunk.y.data<float>() + place;
  }
  float* const float_y = finish.float_y;
  if (chunk.addend.defined() && finish_.addend) {
    finish.uint8_addend = chunk.addend.data<uint8_t>() + place;
    finish.addend_scale *= finish_.addend->scale;
  } else if (chunk.addend.defined()) {
    finish.float_addend = chunk.addend.data<float>() + place;
  }

  const auto taps = static_cast<int64_t>(segments.size());
  if (is_depthwise_) {
    kernels_.depthwise({count, n, rows, segments.data(), taps, b(), finish});
  } else {
    const int64_t columns = groups_ == 1 ? chunk.columns : n / groups_, inside = in_channels_ / groups_;
    const int64_t segment_groups = ceil_div(segment_taps_ * inside, int64_t{4});
    std::vector<int64_t> own = segments;
    for (int64_t group = 0; group < groups_; ++group) {
      const int64_t column = groups_ == 1 ? chunk.first_column : group * column_step_;
      U8S8Finish part = finish;
      part.start += column;
      part.scale += column;
      part.shift += column;
      if (part.float_y != nullptr) part.float_y += group * columns;
      if (part.uint8_y != nullptr) part.uint8_y += group * columns;
      if (part.float_addend != nullptr) part.float_addend += group * columns;
      if (part.uint8_addend != nullptr) part.uint8_addend += group * columns;
      const int8_t* const b = this->b() + column * taps * segment_groups * 4;
      kernels_.multiply({count, columns, rows, own.data(), taps, segment_groups, b, part});
      for (int64_t& segment : own) segment += inside;
    }
  }
  if (finish_.f == nullptr) return;
  const bool is_whole = finish.y_row == chunk.columns;
  const int64_t run_rows = is_whole ? 1 : count, run = is_whole ? count * chunk.columns : chunk.columns;
  for (int64_t i = 0; i < run_rows; ++i) finish_.f->run(float_y + i * n, float_y + i * n, run);
  if (!is_uint8) return;
  for (int64_t i = 0; i < count; ++i)
    kernels_.quantize(float_y + i * chunk.columns, chunk.columns, 1 / finish_.y->scale,
                      static_cast<float>(finish_.y->zero), chunk.y.data<uint8_t>() + place + i * n);
}

}  // namespace pleat::ops
