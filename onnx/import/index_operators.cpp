#include "pleat/onnx/import/operators.h"

/// Elements by their places.

namespace pleat::onnx::imported {
namespace {

/// Indices as int64, those from the end counted from the front.
Tensor from_front(const Tensor& index, int64_t size) {
  const Tensor i = index.to(int64);
  return where(i < 0, i + size, i);
}
/// The same of constants and sizes, at once.
Tensor known_from_front(NodeCall& n, std::size_t input, int64_t size) {
  const GraphValue& index = n.value(input);
  return index.on_host ? from_front(index.tensor, size).to(n.x(0).device()) : from_front(n.x(input), size);
}

/// Whether places that were computed from sizes are 0, 1 ... size - 1: PyTorch's exporter writes so
/// as_strided of a dense tensor, and the assignment to a part of each row. They are not these for another
/// size.
bool is_all_in_order(const GraphValue& places, int64_t size) {
  if (!places.on_host || places.is_constant || places.tensor.numel() != size) return false;
  const auto all = places.tensor.to(int64).to_vector<int64_t>();
  for (int64_t i = 0; i < size; ++i)
    if (all[static_cast<std::size_t>(i)] != i) return false;
  return true;
}

Tensor gather_of(NodeCall& n) {
  const Tensor& x = n.x(0);
  const int64_t axis = n.axis(n.integer("axis", 0), x.rank()), size = x.size(axis);
  const GraphValue& index = n.value(1);
  // One known place is a view.
  if (index.on_host && index.tensor.rank() == 0) {
    const int64_t i = n.integer(1);
    if (i < -size || i >= size) n.fail(fmt::format("index {} is outside of {} along axis {}", i, x, axis));
    return squeeze(narrow(x, axis, i < 0 ? i + size : i, 1), {axis});
  }
  // A table of parameters is an embedding, whose gradient is gathered by rows.
  if (axis == 0 && x.rank() == 2 && is_floating(x.dtype()) && !index.on_host && x.requires_grad())
    return embedding(n.x(1), x);
  const Tensor places = known_from_front(n, 1, size);
  Shape shape(x.shape().begin(), x.shape().begin() + axis);
  shape.insert(shape.end(), places.shape().begin(), places.shape().end());
  shape.insert(shape.end(), x.shape().begin() + axis + 1, x.shape().end());
  if (is_all_in_order(index, size)) return reshape(x, Sizes(shape));
  if (places.rank() == 1) return index_select(x, axis, places);
  return reshape(index_select(x, axis, reshape(places, {places.numel()})), Sizes(shape));
}

Tensor gather_elements(NodeCall& n) {
  const int64_t axis = n.axis(n.integer("axis", 0), n.rank());
  return gather(n.x(0), axis, known_from_front(n, 1, n.x(0).size(axis)));
}

/// Indices of the last dimension, each along a dimension of its own, counted from the front.
Tensor tuples_from_front(NodeCall& n, int64_t batch_dims) {
  const Tensor& x = n.x(0);
  const Tensor index = n.x(1).to(int64);
  const int64_t width = index.size(-1);
  if (batch_dims + width > x.rank())
    n.fail(fmt::format("indices of {} numbers are too long for {}", width, x));
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < width; ++d) sizes.push_back(x.size(batch_dims + d));
  return where(index < 0, index + from_vector(sizes, Sizes{width}, x.device()), index);
}

Tensor gather_nd_of(NodeCall& n) {
  const int64_t batch_dims = n.integer("batch_dims", 0);
  return gather_nd(n.x(0), tuples_from_front(n, batch_dims), {.batch_dims = batch_dims});
}

std::optional<ScatterReduction> reduction_of(NodeCall& n) {
  return n.choice<std::optional<ScatterReduction>>("reduction", "none",
                                                   {{"none", std::nullopt},
                                                    {"add", ScatterReduction::sum},
                                                    {"mul", ScatterReduction::prod},
                                                    {"max", ScatterReduction::amax},
                                                    {"min", ScatterReduction::amin}});
}

Tensor scatter_elements(NodeCall& n) {
  const int64_t axis = n.axis(n.integer("axis", 0), n.rank());
  const Tensor index = known_from_front(n, 1, n.x(0).size(axis));
  if (const auto reduction = reduction_of(n))
    return scatter_reduce(n.x(0), axis, index, n.x(2), {.reduce = *reduction});
  return scatter(n.x(0), axis, index, n.x(2));
}

Tensor scatter_nd_of(NodeCall& n) {
  const Tensor &x = n.x(0), &updates = n.x(2), &places = n.value(1).tensor;
  if (places.rank() == 2 && places.size(1) == 1 && x.rank() > 0 && updates.shape() == x.shape() &&
      n.text("reduction", "none") == "none" && is_all_in_order(n.value(1), x.size(0)))
    return updates;
  return scatter_nd(n.x(0), tuples_from_front(n, 0), n.x(2), {.reduction = reduction_of(n)});
}

Tensor one_hot_of(NodeCall& n) {
  const auto classes = static_cast<int64_t>(n.number(1));  // may be floating
  const Tensor values = n.x(2);
  const Tensor places = from_front(n.x(0), classes);
  const int64_t axis = n.axis(n.integer("axis", -1), n.rank() + 1);
  // Places outside have no 1.
  const Tensor all = arange(0, classes).to(n.x(0).device());
  const Tensor hot = unsqueeze(places, -1) == all;
  const Tensor y = where(hot, narrow(values, 0, 1, 1), narrow(values, 0, 0, 1));
  return axis == n.rank() ? y : movedim(y, {n.rank()}, {axis});
}

Tensor compress(NodeCall& n) {
  const Tensor x = n.has("axis") ? n.x(0) : reshape(n.x(0), {n.x(0).numel()});
  const int64_t axis = n.axis(n.integer("axis", 0), x.rank());
  std::vector<int64_t> places;
  const std::vector<int64_t> chosen = n.integers(1);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i] != 0) places.push_back(static_cast<int64_t>(i));
  return index_select(x, axis, from_vector(places, Sizes{std::ssize(places)}, x.device()));
}

Tensor reverse_sequence(NodeCall& n) {
  const Tensor& x = n.x(0);
  const int64_t batch = n.axis(n.integer("batch_axis", 1), x.rank()),
                time = n.axis(n.integer("time_axis", 0), x.rank());
  const int64_t steps = x.size(time);
  const std::vector<int64_t> lengths = n.integers(1);
  if (std::ssize(lengths) != x.size(batch)) n.fail("needs a length for each sequence");
  std::vector<int64_t> from(static_cast<std::size_t>(x.size(batch) * steps));
  for (int64_t b = 0; b < x.size(batch); ++b)
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t length = lengths[static_cast<std::size_t>(b)];
      from[static_cast<std::size_t>(b * steps + t)] = t < length ? length - 1 - t : t;
    }
  // [batch, time, ...]
  const Tensor front = movedim(x, {batch, time}, {0, 1});
  Tensor index = from_vector(from, Sizes{x.size(batch), steps}, x.device());
  while (index.rank() < front.rank()) index = unsqueeze(index, -1);
  return movedim(gather(front, 1, expand(index, Sizes(front.shape()))), {0, 1}, {batch, time});
}

NodeResults topk_of(NodeCall& n) {
  const Tensor& x = n.x(0);
  const int64_t k = n.opset() < 10 ? n.integer("k", 1) : n.integer(1);
  const auto [values, indices] =
      topk(x, k, {.dim = n.axis(n.integer("axis", -1), x.rank()), .largest = n.flag("largest", true)});
  return std::vector{values, indices};
}

Tensor grid_sample_of(NodeCall& n) {
  return grid_sample(n.x(0), n.x(1),
                     {.mode = n.choice<GridMode>("mode", "linear",
                                                 {{"linear", GridMode::linear},
                                                  {"bilinear", GridMode::linear},
                                                  {"nearest", GridMode::nearest},
                                                  {"cubic", GridMode::cubic},
                                                  {"bicubic", GridMode::cubic}}),
                      .padding = n.choice<GridPadding>("padding_mode", "zeros",
                                                       {{"zeros", GridPadding::zeros},
                                                        {"border", GridPadding::border},
                                                        {"reflection", GridPadding::reflection}}),
                      .align_corners = n.flag("align_corners")});
}

Tensor roi_align_of(NodeCall& n) {
  if (n.text("mode", "avg") != "avg") n.fail("mode 'max' is not computed");
  const bool half_pixel = n.text("coordinate_transformation_mode",
                                 n.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  const Tensor boxes = cat({unsqueeze(n.x(2).to(n.dtype(1)), 1), n.x(1)}, 1);
  return roi_align(n.x(0), boxes,
                   {.output_size = {n.integer("output_height", 1), n.integer("output_width", 1)},
                    .spatial_scale = n.number("spatial_scale", 1),
                    .sampling_ratio = n.integer("sampling_ratio", 0),
                    .aligned = half_pixel});
}

}  // namespace

Operators index_operators() {
  const std::vector<Slot> table{Slot::parameter, Slot::option};
  return {
      {"AffineGrid/2(align_corners)", {[](NodeCall& n) -> NodeResults {
         return affine_grid(n.x(0), Sizes(n.integers(1)), n.flag("align_corners"));
       }}},
      {"ArrayFeatureExtractor/2", plain([](const Tensor& x, const Tensor& index) {
         return index_select(x, -1, reshape(index, {index.numel()}));
       })},
      {"Compress/2(axis)", {compress}},
      {"Gather/2(axis)", {gather_of, table}},
      {"GatherElements/2(axis)", {gather_elements}},
      {"GatherND/2(batch_dims)", {gather_nd_of}},
      {"GridSample/2(align_corners mode padding_mode)", {grid_sample_of}},
      {"NonZero/1",
       {[](NodeCall& n) -> NodeResults { return transpose(nonzero(n.x()), 0, 1).contiguous(); }}},
      {"OneHot/3(axis)", {one_hot_of, {Slot::operand, Slot::option}}},
      {"ReverseSequence/2(batch_axis time_axis)", {reverse_sequence}},
      {"RoiAlign/3(coordinate_transformation_mode mode output_height output_width sampling_ratio "
       "spatial_scale)",
       {roi_align_of}},
      {"Scatter/3(axis)", {scatter_elements}},
      {"ScatterElements/3(axis reduction)", {scatter_elements}},
      {"ScatterND/3(reduction)", {scatter_nd_of}},
      {"TopK/2(axis k largest sorted)", {topk_of, {Slot::operand, Slot::option}}},
  };
}

}  // namespace pleat::onnx::imported
