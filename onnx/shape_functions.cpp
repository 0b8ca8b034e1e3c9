#include <algorithm>
#include <limits>
#include <numeric>

#include "pleat/onnx/functions.h"
#include "pleat/ops/shape/pad.h"

/// Functions that arrange elements anew.

namespace pleat::onnx {
namespace {

constexpr Size last{0, std::numeric_limits<int64_t>::max()};

std::size_t at(int64_t dim) { return static_cast<std::size_t>(dim); }

Operand reshape(Emit& e) { return e.reshape(e.in(0), e.out_shape()); }

Integers in_order(int64_t rank) {
  Integers order(at(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Operand permute(Emit& e) {
  Integers order = e.integers("order");
  for (int64_t& dim : order)
    if (dim < 0) dim += std::ssize(order);
  return e.transpose(e.in(0), order);
}

Operand transpose(Emit& e) {
  if (e.rank(0) == 0) return e.in(0);
  Integers order = in_order(e.rank(0));
  std::swap(order[at(e.dim("dim0"))], order[at(e.dim("dim1"))]);
  return e.transpose(e.in(0), order);
}

Operand expand(Emit& e) {
  SizeList shape = e.out_shape();
  // 1 leaves a dimension as it is.
  const SizeList& from = e.shape(0);
  const std::size_t added = shape.size() - from.size();
  for (std::size_t d = 0; d < from.size(); ++d)
    if (shape[added + d] == from[d]) shape[added + d] = {0, 1};
  return apply("Expand", e.in(0), e.list(shape));
}

Operand slice(Emit& e) {
  const Size start = e.sizes("start")[0], end = e.sizes("end")[0];
  return e.slice(e.in(0), e.dim(), start, end, e.integer("step"));
}

Operand narrow(Emit& e) {
  const Size start = e.sizes("start")[0], length = e.sizes("length")[0];
  Size end{start.scale + length.scale, start.offset + length.offset};
  // From the end: what ends there has no larger index.
  if (start.fixed() && start.offset < 0 && end == Size{}) end = last;
  return e.slice(e.in(0), e.dim(), start, end);
}

Operand select(Emit& e) {
  return e.node("Gather", {e.in(0), e.reshape(e.list(e.sizes("index")), {})}, {{"axis", e.dim()}});
}

Operand cat(Emit& e) {
  Operands inputs;
  for (std::size_t i = 0; i < e.inputs(); ++i) inputs.push_back(e.x(i));
  return e.concat(inputs, e.dim("dim", std::ssize(e.out_shape())));
}

Operand stack(Emit& e) {
  const int64_t dim = e.dim("dim", std::ssize(e.out_shape()));
  Operands inputs;
  for (std::size_t i = 0; i < e.inputs(); ++i)
    inputs.push_back(apply("Unsqueeze", e.x(i), e.list(Integers{dim})));
  return e.concat(inputs, dim);
}

Operands split(Emit& e) {
  const SizeList& sizes = e.sizes("sizes");
  return e.nodes("Split", {e.in(0), e.list(sizes)}, {{"axis", e.dim()}}, sizes.size());
}

Operand flip(Emit& e) {
  Operand y = e.in(0);
  for (int64_t dim : e.integers("dims"))
    y = e.slice(y, dim < 0 ? dim + e.rank(0) : dim, {0, -1}, {0, std::numeric_limits<int64_t>::min() + 1},
                -1);
  return y;
}

/// y[i] = x[i - shift] of `size` elements along a dimension.
Operand rolled(Emit& e, const Operand& x, int64_t shift, int64_t dim, int64_t size) {
  const int64_t first = ((-shift % size) + size) % size;
  if (first == 0) return x;
  return e.concat({e.slice(x, dim, {0, first}, last), e.slice(x, dim, {}, {0, first})}, dim);
}

Operand roll(Emit& e) {
  const Integers shifts = e.integers("shifts"), dims = e.integers("dims");
  if (!dims.empty()) {
    Operand y = e.in(0);
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const int64_t dim = dims[i] < 0 ? dims[i] + e.rank(0) : dims[i];
      y = rolled(e, y, shifts[i], dim, e.fixed_size(0, dim));
    }
    return y;
  }
  int64_t size = 1;
  for (int64_t d = 0; d < e.rank(0); ++d) size *= e.fixed_size(0, d);
  return e.reshape(rolled(e, e.reshape(e.in(0), {{0, size}}), shifts[0], 0, size), e.out_shape());
}

Operand repeat(Emit& e) {
  const SizeList& repeats = e.sizes("repeats");
  SizeList once(repeats.size() - e.shape(0).size(), Size{0, 1});
  once.insert(once.end(), e.shape(0).begin(), e.shape(0).end());
  const Operand x = once.size() == e.shape(0).size() ? e.in(0) : e.reshape(e.in(0), once);
  return apply("Tile", x, e.list(repeats));
}

Operand repeat_interleave(Emit& e) {
  const int64_t dim = e.dim();
  Integers repeats(at(e.rank(0) + 1), 1);
  repeats[at(dim + 1)] = e.integer("times");
  const Operand apart = apply("Unsqueeze", e.in(0), e.list(Integers{dim + 1}));
  return e.reshape(apply("Tile", apart, e.list(repeats)), e.out_shape());
}

/// The last three dimensions as six, in another order, as three again.
Operand shuffled(Emit& e, const SizeList& six, const Integers& order) {
  SizeList shape(e.shape(0).begin(), e.shape(0).end() - 3);
  const int64_t before = std::ssize(shape);
  shape.insert(shape.end(), six.begin(), six.end());
  Integers all = in_order(before);
  for (const int64_t dim : order) all.push_back(before + dim);
  return e.reshape(e.transpose(e.reshape(e.in(0), shape), all), e.out_shape());
}

Operand pixel_shuffle(Emit& e) {
  const int64_t r = e.integer("factor");
  if (e.rank(0) == 4) return e.node("DepthToSpace", {e.in(0)}, {{"blocksize", r}, {"mode", "CRD"}});
  const int64_t c = e.fixed_size(0, -3) / (r * r), h = e.fixed_size(0, -2), w = e.fixed_size(0, -1);
  return shuffled(e, {{0, c}, {0, r}, {0, r}, {0, h}, {0, w}}, {0, 3, 1, 4, 2});
}

Operand pixel_unshuffle(Emit& e) {
  const int64_t r = e.integer("factor");
  const int64_t c = e.fixed_size(0, -3), h = e.fixed_size(0, -2) / r, w = e.fixed_size(0, -1) / r;
  return shuffled(e, {{0, c}, {0, h}, {0, r}, {0, w}, {0, r}}, {0, 2, 4, 1, 3});
}

Operand channel_shuffle(Emit& e) {
  const int64_t groups = e.integer("groups");
  SizeList shape = e.shape(0);
  const int64_t channels = e.fixed_size(0, 1);
  shape[1] = {0, groups};
  shape.insert(shape.begin() + 2, Size{0, channels / groups});
  Integers order = in_order(std::ssize(shape));
  std::swap(order[1], order[2]);
  return e.reshape(e.transpose(e.reshape(e.in(0), shape), order), e.out_shape());
}

/// The other end of a dimension on both sides; negative widths cut off first.
Operand padded_in_a_circle(Emit& e, Operand x, int64_t dim, int64_t size, int64_t before, int64_t after) {
  const int64_t start = std::max<int64_t>(-before, 0), end = size - std::max<int64_t>(-after, 0);
  if (start != 0 || end != size) x = e.slice(x, dim, {0, start}, {0, end});
  const int64_t left = end - start;
  Operands parts;
  if (before > 0) parts.push_back(e.slice(x, dim, {0, left - before}, last));
  parts.push_back(x);
  if (after > 0) parts.push_back(e.slice(x, dim, {}, {0, after}));
  return parts.size() == 1 ? x : e.concat(parts, dim);
}

Operand pad(Emit& e) {
  const Integers widths = e.integers("widths");
  const auto mode = static_cast<PadMode>(e.integer("mode"));
  const int64_t rank = e.rank(0);
  if (mode == PadMode::circular) {
    Operand y = e.in(0);
    for (std::size_t i = 0; i + 1 < widths.size(); i += 2) {
      const int64_t dim = rank - 1 - static_cast<int64_t>(i / 2);
      if (widths[i] != 0 || widths[i + 1] != 0)
        y = padded_in_a_circle(e, y, dim, e.fixed_size(0, dim), widths[i], widths[i + 1]);
    }
    return y;
  }
  if (mode != PadMode::constant && std::any_of(widths.begin(), widths.end(), [](int64_t w) { return w < 0; }))
    e.refuse("negative widths need constant or circular mode");
  Integers pads(at(2 * rank), 0);
  for (std::size_t i = 0; i + 1 < widths.size(); i += 2) {
    const int64_t dim = rank - 1 - static_cast<int64_t>(i / 2);
    pads[at(dim)] = widths[i];
    pads[at(rank + dim)] = widths[i + 1];
  }
  const char* name = mode == PadMode::constant ? "constant" : mode == PadMode::reflect ? "reflect" : "edge";
  const Operand value = mode == PadMode::constant ? e.number_of("value") : Operand();
  return e.node("Pad", {e.in(0), e.list(pads), value}, {{"mode", name}});
}

Conversion triangle(bool upper) {
  return {
      1, 1, [upper](Emit& e) {
        return e.node("Trilu", {e.in(0), e.reshape(e.list(e.integers("diagonal")), {})}, {{"upper", upper}});
      }};
}

}  // namespace

Conversions shape_functions() {
  return {
      {"view", {1, 1, reshape}},
      {"reshape", {1, 1, reshape}},
      {"flatten", {1, 1, reshape}},
      {"unflatten", {1, 1, reshape}},
      {"squeeze", {1, 1, reshape}},
      {"unsqueeze", {1, 1, reshape}},
      {"permute", {1, 1, permute}},
      {"transpose", {1, 1, transpose}},
      {"expand", {1, 1, expand}},
      {"slice", {1, 1, slice}},
      {"narrow", {1, 1, narrow}},
      {"select", {1, 1, select}},
      {"cat", {1, 10000, cat}},
      {"stack", {1, 10000, stack}},
      {"split", {1, 1, split}},
      {"flip", {1, 1, flip}},
      {"roll", {1, 1, roll}},
      {"repeat", {1, 1, repeat}},
      {"repeat_interleave", {1, 1, repeat_interleave}},
      {"pixel_shuffle", {1, 1, pixel_shuffle}},
      {"pixel_unshuffle", {1, 1, pixel_unshuffle}},
      {"channel_shuffle", {1, 1, channel_shuffle}},
      {"pad", {1, 1, pad}},
      {"tril", triangle(false)},
      {"triu", triangle(true)},
  };
}

}  // namespace pleat::onnx
