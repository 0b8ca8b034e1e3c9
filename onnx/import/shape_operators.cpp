#include "pleat/onnx/import/operators.h"
#include "pleat/onnx/model_file.h"

/// Shapes, and elements arranged anew.

namespace pleat::onnx::imported {
namespace {

std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

/// 0, 1 ... count - 1.
Integers first_axes(std::size_t count) {
  Integers axes(count);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

NodeResults shape_of(NodeCall& n) {
  const Tensor& x = n.value(0).tensor;
  const int64_t rank = x.rank();
  const auto end_of = [&](int64_t dim) { return std::clamp<int64_t>(dim < 0 ? dim + rank : dim, 0, rank); };
  const int64_t start = end_of(n.integer("start", 0)), end = end_of(n.integer("end", rank));
  Integers sizes;
  for (int64_t d = start; d < end; ++d) sizes.push_back(x.size(d));
  return on_host(from_vector(sizes, Sizes{std::ssize(sizes)}, Device()));
}

/// ONNX's shapes: 0 keeps a size, -1 is what is left.
Tensor reshape_of(NodeCall& n) {
  const Tensor& x = n.x();
  Integers shape = n.option(1, "shape").value_or(Integers());
  if (!n.flag("allowzero"))
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (shape[d] == 0) {
        if (std::ssize(shape) > x.rank() && static_cast<int64_t>(d) >= x.rank())
          n.fail(fmt::format("a size 0 keeps one of the input, {}, which has no dimension {}", x, d));
        shape[d] = x.size(static_cast<int64_t>(d));
      }
  return reshape(x, Sizes(shape));
}

Tensor flattened(NodeCall& n) {
  const Tensor& x = n.x();
  int64_t axis = n.integer("axis", 1);
  if (axis < 0) axis += x.rank();
  if (axis < 0 || axis > x.rank()) n.fail(fmt::format("axis {} is none of {}", axis, x));
  if (axis == 1 && x.rank() > 1) return flatten(x, 1);
  int64_t rows = 1;
  for (int64_t d = 0; d < axis; ++d) rows *= x.size(d);
  return reshape(x, {rows, rows == 0 ? 0 : x.numel() / rows});
}

Tensor squeezed(NodeCall& n) {
  const Tensor& x = n.x();
  Integers axes;
  if (const auto given = n.option(1, "axes")) {
    for (const int64_t axis : *given) {
      axes.push_back(n.axis(axis, x.rank()));
      if (x.size(axes.back()) != 1) n.fail(fmt::format("dimension {} of {} is not 1", axis, x));
    }
  } else {
    for (int64_t d = 0; d < x.rank(); ++d)
      if (x.size(d) == 1) axes.push_back(d);
  }
  return axes.empty() ? x : squeeze(x, Dims(axes));
}

Tensor unsqueezed(NodeCall& n) {
  const Integers given = n.option(1, "axes").value_or(Integers());
  Integers axes;
  for (const int64_t axis : given) axes.push_back(n.axis(axis, n.rank() + std::ssize(given)));
  std::sort(axes.begin(), axes.end());
  Tensor y = n.x();
  for (const int64_t axis : axes) y = unsqueeze(y, axis);
  return y;
}

Tensor transposed(NodeCall& n) {
  Integers order = first_axes(at(n.rank()));
  std::ranges::reverse(order);
  return permute(n.x(), Dims(n.integers("perm", order)));
}

Tensor expanded(NodeCall& n) {
  // Both are broadcast.
  const Tensor& x = n.x();
  Integers shape = n.integers(1);
  while (std::ssize(shape) < x.rank()) shape.insert(shape.begin(), 1);
  const auto added = std::ssize(shape) - x.rank();
  for (int64_t d = 0; d < x.rank(); ++d)
    if (shape[at(added + d)] == 1) shape[at(added + d)] = x.size(d);
  return Shape(shape) == x.shape() ? x : expand(x, Sizes(shape));
}

Tensor concat(NodeCall& n) {
  const std::vector<Tensor> all = n.all();
  return all.size() == 1 ? all[0] : cat(all, n.axis(n.integer("axis", 1), all.at(0).rank()));
}

NodeResults split_of(NodeCall& n) {
  const Tensor& x = n.x();
  const int64_t axis = n.axis(n.integer("axis", 0), x.rank()), size = x.size(axis);
  auto sizes = n.option(1, "split");
  if (!sizes) {
    const int64_t parts = n.integer("num_outputs", static_cast<int64_t>(n.outputs()));
    if (parts < 1) n.fail("has no outputs");
    const int64_t each = (size + parts - 1) / parts;
    sizes.emplace(at(parts), each);
    sizes->back() = size - each * (parts - 1);
  }
  return split_with_sizes(x, IntegerList(*sizes), axis);
}

/// Elements [start, end) by steps along a dimension; backwards for a negative step.
Tensor sliced(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  const int64_t size = x.size(dim);
  const auto bound = [&](int64_t i, int64_t least, int64_t most) {
    return std::clamp<int64_t>(i < 0 ? i + size : i, least, most);
  };
  if (step > 0) {
    start = bound(start, 0, size);
    end = std::max(start, bound(end, 0, size));
    return start == 0 && end == size && step == 1 ? x : slice(x, dim, start, end, step);
  }
  start = bound(start, -1, size - 1);
  end = std::min(start, end < -size ? -1 : bound(end, -1, size - 1));
  // The same elements forwards, then turned round.
  const int64_t count = (start - end - step - 1) / -step;
  if (count == 0) return narrow(x, dim, 0, 0);
  return flip(slice(x, dim, start + (count - 1) * step, start + 1, -step), {dim});
}

Tensor slice_of(NodeCall& n) {
  Tensor y = n.x();
  const auto starts = n.option(1, "starts").value_or(Integers()),
             ends = n.option(2, "ends").value_or(Integers());
  const Integers axes = n.option(3, "axes").value_or(first_axes(starts.size()));
  Integers steps(starts.size(), 1);
  if (n.has(4)) steps = n.integers(4);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    n.fail("needs as many ends, axes and steps as starts");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (steps[i] == 0) n.fail("a step is 0");
    y = sliced(y, n.axis(axes[i], y.rank()), starts[i], ends[i], steps[i]);
  }
  return y;
}

Tensor tiled(NodeCall& n) { return repeat(n.x(), Sizes(n.integers(1))); }

/// ONNX has all low widths before all high ones; a function of Pleat the last dimension first.
Tensor padded(NodeCall& n) {
  const Tensor& x = n.x();
  const Integers pads = n.option(1, n.opset() < 2 ? "paddings" : "pads").value_or(Integers());
  const Integers axes = n.has(3) ? n.integers(3) : first_axes(at(x.rank()));
  if (pads.size() != 2 * axes.size())
    n.fail(fmt::format("needs {} pads, got {}", 2 * axes.size(), pads.size()));
  Integers widths(at(2 * x.rank()), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int64_t from_last = x.rank() - 1 - n.axis(axes[i], x.rank());
    widths[at(2 * from_last)] = pads[i];
    widths[at(2 * from_last + 1)] = pads[axes.size() + i];
  }
  while (widths.size() >= 2 && widths.back() == 0 && widths[widths.size() - 2] == 0)
    widths.resize(widths.size() - 2);
  if (widths.empty()) return x;
  PadOptions options{.mode = n.choice<PadMode>("mode", "constant",
                                               {{"constant", PadMode::constant},
                                                {"reflect", PadMode::reflect},
                                                {"edge", PadMode::replicate},
                                                {"wrap", PadMode::circular}})};
  if (options.mode == PadMode::constant) {
    if (!n.has(2))
      options.value = n.opset() < 11 ? n.number("value", 0) : 0;
    else if (is_floating(x.dtype()))
      options.value = n.number(2);
    else
      options.value = x.dtype() == boolean ? Scalar(n.number(2) != 0) : Scalar(n.integer(2));
  }
  return pad(x, IntegerList(widths), options);
}

Tensor depth_to_space(NodeCall& n) {
  const int64_t r = n.integer("blocksize", 1);
  const Tensor& x = n.x();
  if (x.rank() != 4 || r < 1 || x.size(1) % (r * r) != 0)
    n.fail(fmt::format("cannot unpack blocks of {} of {}", r, x));
  if (n.text("mode", "DCR") == "CRD") return pixel_shuffle(x, r);
  const int64_t b = x.size(0), c = x.size(1) / (r * r), h = x.size(2), w = x.size(3);
  const Tensor six = reshape(x, {b, r, r, c, h, w});
  return reshape(permute(six, {0, 3, 4, 1, 5, 2}), {b, c, h * r, w * r});
}

Tensor space_to_depth(NodeCall& n) {
  const int64_t r = n.integer("blocksize", 1);
  const Tensor& x = n.x();
  if (x.rank() != 4 || r < 1 || x.size(2) % r != 0 || x.size(3) % r != 0)
    n.fail(fmt::format("cannot pack blocks of {} of {}", r, x));
  const int64_t b = x.size(0), c = x.size(1), h = x.size(2) / r, w = x.size(3) / r;
  const Tensor six = reshape(x, {b, c, h, r, w, r});
  const bool channels_first = n.text("mode", "DCR") == "CRD";
  return reshape(channels_first ? permute(six, {0, 1, 3, 5, 2, 4}) : permute(six, {0, 3, 5, 1, 2, 4}),
                 {b, c * r * r, h, w});
}

Tensor trilu(NodeCall& n) {
  const int64_t diagonal = n.has(1) ? n.integer(1) : 0;
  return n.flag("upper", true) ? triu(n.x(), diagonal) : tril(n.x(), diagonal);
}

NodeResults constant(NodeCall& n) {
  GraphValue value;
  if (n.has("value")) {
    const FileTensor& given = n.tensor("value");
    value = GraphValue(given.tensor);
    value.type = given.type;
  } else if (n.has("value_float")) {
    value = scalar(n.number("value_float", 0), float32);
  } else if (n.has("value_int")) {
    value = scalar(n.integer("value_int", 0), int64);
  } else if (n.has("value_floats")) {
    const std::vector<double> list = n.numbers("value_floats");
    value = from_vector(std::vector<float>(list.begin(), list.end()), Sizes{std::ssize(list)}, Device());
  } else if (n.has("value_ints")) {
    const Integers list = n.integers("value_ints");
    value = from_vector(list, Sizes{std::ssize(list)}, Device());
  } else {
    n.fail("is a constant of a kind that Pleat has no type for: text, or a sparse tensor");
  }
  return value;
}

/// A shape full of one number.
Tensor constant_of_shape(NodeCall& n) {
  const Tensor value = n.has("value") ? n.tensor("value").tensor : scalar(0, float32);
  if (value.numel() != 1) n.fail("the value should be one number");
  const Integers shape = n.integers(0);
  Tensor one = view(value, Sizes(Shape{}));
  if (!n.on_host()) one = n.operand(on_host(one));
  return n.on_host() ? expand(one, Sizes(shape)).clone() : expand(one, Sizes(shape));
}

Tensor range(NodeCall& n) {
  const DType dtype = n.value(0).tensor.dtype();
  if (is_floating(dtype))
    return arange(n.number(0), n.number(1), n.number(2), {.dtype = dtype, .device = Device()});
  return arange(n.integer(0), n.integer(1), n.integer(2), {.dtype = dtype, .device = Device()});
}

Tensor eye_like(NodeCall& n) {
  const Tensor& x = n.value(0).tensor;
  if (x.rank() != 2) n.fail(fmt::format("needs a matrix, got {}", x));
  const DType dtype = n.has("dtype") ? n.dtype_of_number(n.integer("dtype", 1)) : x.dtype();
  const int64_t rows = x.size(0), columns = x.size(1), k = n.integer("k", 0);
  const Tensor i = view(arange(0, rows), {rows, 1}), j = view(arange(0, columns), {1, columns});
  return (j - i == k).to(dtype).to(x.device());
}

Tensor center_crop_pad(NodeCall& n) {
  Tensor y = n.x();
  const Integers sizes = n.integers(1);
  const Integers axes = n.integers("axes", first_axes(sizes.size()));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int64_t dim = n.axis(axes.at(i), y.rank()), size = y.size(dim);
    if (sizes[i] <= size) {
      y = narrow(y, dim, (size - sizes[i]) / 2, sizes[i]);
    } else {
      Integers widths(at(2 * (y.rank() - dim)), 0);
      widths[widths.size() - 2] = (sizes[i] - size) / 2;
      widths[widths.size() - 1] = sizes[i] - size - (sizes[i] - size) / 2;
      y = pad(y, IntegerList(widths));
    }
  }
  return y;
}

}  // namespace

Operators shape_operators() {
  const std::vector<Slot> first{Slot::operand, Slot::option};
  return {
      {"CenterCropPad/2(axes)", {center_crop_pad, first}},
      {"Concat(axis)", {concat}},
      {"Constant/0(value value_float value_floats value_int value_ints)", {constant}},
      {"ConstantOfShape/1(value)", {constant_of_shape, {Slot::option}}},
      {"DepthToSpace/1(blocksize mode)", {depth_to_space}},
      {"Expand/2", {expanded, first}},
      {"EyeLike/1(dtype k)", {eye_like}},
      {"Flatten/1(axis)", {flattened}},
      {"Pad/4(mode pads value)", {padded, first}},
      {"Range/3(stash_type)", {range, {Slot::option}}},
      {"Reshape/2(allowzero shape)", {reshape_of, first}},
      {"Shape/1(end start)", {shape_of}},
      {"Size/1",
       {[](NodeCall& n) -> NodeResults { return on_host(scalar(n.value(0).tensor.numel(), int64)); }}},
      {"Slice/5(axes ends starts)", {slice_of, first}},
      {"SpaceToDepth/1(blocksize mode)", {space_to_depth}},
      {"Split/2(axis num_outputs split)", {split_of, first}},
      {"Squeeze/2(axes)", {squeezed, first}},
      {"Tile/2", {tiled, first}},
      {"Transpose/1(perm)", {transposed}},
      {"Trilu/2(upper)", {trilu, first}},
      {"Unsqueeze/2(axes)", {unsqueezed, first}},
  };
}

}  // namespace pleat::onnx::imported
