// Views, joins, rearrangements, padding and indices on the other device.

#include "pleat/autograd/functions/shape.h"

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/copy.h"
#include "pleat/autograd/functions/index.h"
#include "pleat/autograd/functions/join.h"
#include "pleat/autograd/functions/pad.h"
#include "pleat/autograd/functions/rearrange.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"

using namespace pleat;
using namespace pleat::test;

namespace {

Tensor image() { return normal({2, 3, 4, 5}); }

/// A function of one image.
void agrees_on_image(const std::function<Outputs(const Tensor&)>& f) {
  agrees({image()}, [&](const Tensors& t) { return f(t[0]); });
}

/// A view, and as the operand of a product, so that its strides are read and its gradient comes in pieces.
void agrees_as_view(const std::function<Tensor(const Tensor&)>& view) {
  agrees_on_image([&](const Tensor& x) { return Tensors{view(x), view(x) * view(x + 1)}; });
}

}  // namespace

TEST_CASE("device: view", "[device]") {
  agrees_as_view([](const Tensor& x) { return view(to_format(x, MemoryFormat::contiguous), {6, 20}); });
}
TEST_CASE("device: reshape", "[device]") {
  agrees_as_view([](const Tensor& x) { return reshape(x, {4, -1}); });
}
TEST_CASE("device: permute", "[device]") {
  agrees_as_view([](const Tensor& x) { return permute(x, {2, 0, 3, 1}); });
}
TEST_CASE("device: transpose", "[device]") {
  agrees_as_view([](const Tensor& x) { return transpose(x, 1, -1); });
}
TEST_CASE("device: expand", "[device]") {
  agrees({normal({3, 1, 5})}, [](const Tensors& t) { return expand(t[0], {2, 3, 4, 5}); });
}
TEST_CASE("device: slice", "[device]") {
  agrees_as_view([](const Tensor& x) { return slice(x, 3, 1, 5, 2); });
}
TEST_CASE("device: narrow", "[device]") {
  agrees_as_view([](const Tensor& x) { return narrow(x, 1, 1, 2); });
}
TEST_CASE("device: select", "[device]") {
  agrees_as_view([](const Tensor& x) { return select(x, 2, -1); });
}
TEST_CASE("device: squeeze", "[device]") {
  agrees({normal({3, 1, 5, 1})}, [](const Tensors& t) { return Tensors{squeeze(t[0]), squeeze(t[0], {1})}; });
}
TEST_CASE("device: unsqueeze", "[device]") {
  agrees_as_view([](const Tensor& x) { return unsqueeze(x, 2); });
}
TEST_CASE("device: flatten", "[device]") {
  agrees_as_view([](const Tensor& x) { return flatten(x, 1, 2); });
}
TEST_CASE("device: unflatten", "[device]") {
  agrees_as_view([](const Tensor& x) { return unflatten(x, 2, {2, -1}); });
}
TEST_CASE("device: unfold_dimension", "[device]") {
  agrees_as_view([](const Tensor& x) { return unfold_dimension(x, 3, 3, 1); });  // windows that overlap
}
TEST_CASE("device: diagonal", "[device]") {
  agrees_as_view([](const Tensor& x) { return diagonal(x, 1, 2, 3); });
}

TEST_CASE("device: cat", "[device]") {
  agrees({image(), normal({2, 1, 4, 5}, 2), normal({2, 2, 4, 5}, 3)},
         [](const Tensors& t) { return cat(t, 1); });
}
TEST_CASE("device: stack", "[device]") {
  agrees({image(), normal({2, 3, 4, 5}, 2)}, [](const Tensors& t) {
    return Tensors{stack(t), stack(t, -1)};
  });
}
TEST_CASE("device: split", "[device]") {
  agrees_on_image([](const Tensor& x) { return split(x, 2, 3); });
}
TEST_CASE("device: split_with_sizes", "[device]") {
  agrees_on_image([](const Tensor& x) { return split_with_sizes(x, {1, 3, 1}, 3); });
}
TEST_CASE("device: chunk", "[device]") {
  agrees_on_image([](const Tensor& x) { return chunk(x, 2, 1); });
}

TEST_CASE("device: flip", "[device]") {
  agrees_on_image([](const Tensor& x) { return flip(x, {0, 2, -1}); });
}
TEST_CASE("device: roll", "[device]") {
  agrees_on_image([](const Tensor& x) { return Tensors{roll(x, {1, -2}, {1, 3}), roll(x, {7})}; });
}
TEST_CASE("device: repeat", "[device]") {
  agrees_on_image([](const Tensor& x) { return repeat(x, {2, 1, 3, 1, 2}); });
}
TEST_CASE("device: tile", "[device]") {
  agrees_on_image([](const Tensor& x) { return tile(x, {2, 3}); });
}
TEST_CASE("device: repeat_interleave", "[device]") {
  agrees_on_image([](const Tensor& x) { return repeat_interleave(x, 3, 2); });
}

TEST_CASE("device: pad", "[device]") {
  for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular}) {
    CAPTURE(static_cast<int>(mode));
    agrees_on_image([&](const Tensor& x) { return pad(x, {1, 2, 3, 0}, {.mode = mode, .value = 0.5}); });
  }
  agrees_on_image([](const Tensor& x) { return pad(x, {-1, 2, 1, -1}); });
}

TEST_CASE("device: gather", "[device]") {
  agrees({image(), integers({2, 3, 6, 5}, 0, 4)}, [](const Tensors& t) { return gather(t[0], 2, t[1]); });
}
TEST_CASE("device: scatter_add", "[device]") {
  agrees({image(), integers({2, 3, 6, 5}, 0, 4), normal({2, 3, 6, 5}, 2)},
         [](const Tensors& t) { return scatter_add(t[0], 2, t[1], t[2]); });
  // A line so long that its elements are sorted by where they go.
  agrees({normal({5}), integers({100}, 0, 5), normal({100}, 2)},
         [](const Tensors& t) { return scatter_add(t[0], 0, t[1], t[2]); });
}
TEST_CASE("device: scatter", "[device]") {
  const Tensors x{image(), integers({2, 3, 6, 5}, 0, 4), normal({2, 3, 6, 5}, 2)};
  agrees(x, [](const Tensors& t) { return scatter(t[0], 2, t[1], t[2]); });
  agrees(x, [](const Tensors& t) { return scatter(t[0], 2, t[1], 0.5); });
  agrees({normal({5}), integers({100}, 0, 5), normal({100}, 2)},
         [](const Tensors& t) { return scatter(t[0], 0, t[1], t[2]); });
}
TEST_CASE("device: index_select", "[device]") {
  agrees({image(), integers({7}, 0, 3)}, [](const Tensors& t) { return index_select(t[0], 1, t[1]); });
}
TEST_CASE("device: index_add", "[device]") {
  agrees({image(), integers({7}, 0, 3), normal({2, 7, 4, 5}, 2)},
         [](const Tensors& t) { return index_add(t[0], 1, t[1], t[2]); });
}
TEST_CASE("device: writing by indices", "[device]") {
  const Tensors rows = {image(), integers({2}, 0, 3), normal({2, 2, 4, 5}, 2)};
  agrees(rows, [](const Tensors& t) { return index_copy(t[0], 1, t[1], t[2]); });
  agrees(rows, [](const Tensors& t) { return index_fill(t[0], 1, t[1], 0.5); });
  const Tensors places = {image(), integers({6}, 0, 2), integers({6}, 0, 3), normal({6, 4, 5}, 2)};
  for (const bool accumulate : {false, true})
    agrees(places, [=](const Tensors& t) { return index_put(t[0], {t[1], t[2]}, t[3], accumulate); });
  agrees(places, [](const Tensors& t) { return index_put(t[0], {t[1], t[2]}, 0.5); });
}
TEST_CASE("device: writing by indices in place", "[device]") {
  const Tensors wide = {image(), integers({2, 3, 4, 5}, 0, 5), normal({2, 3, 4, 5}, 2)};
  agrees(wide, [](const Tensors& t) { return scatter_(clone(t[0]), 3, t[1], t[2]); });
  agrees(wide, [](const Tensors& t) { return scatter_add_(clone(t[0]), 3, t[1], t[2]); });
  const Tensors rows = {image(), integers({2}, 0, 3), normal({2, 2, 4, 5}, 2)};
  agrees(rows, [](const Tensors& t) { return index_add_(clone(t[0]), 1, t[1], t[2]); });
  agrees(rows, [](const Tensors& t) { return index_copy_(clone(t[0]), 1, t[1], t[2]); });
  agrees(rows, [](const Tensors& t) { return index_fill_(clone(t[0]), 1, t[1], 0.5); });
  agrees({image(), integers({6}, 0, 2), normal({6, 3, 4, 5}, 2)},
         [](const Tensors& t) { return index_put_(clone(t[0]), {t[1]}, t[2]); });
}
TEST_CASE("device: masked_select", "[device]") {
  agrees({image(), coins({2, 3, 4, 5})}, [](const Tensors& t) { return masked_select(t[0], t[1]); });
}
TEST_CASE("device: embedding", "[device]") {
  const Tensors x{integers({3, 4}, 0, 5), normal({5, 6})};
  agrees(x, [](const Tensors& t) { return embedding(t[0], t[1]); });
  // An index that is not drawn: the row's gradient is 0 either way, so that differences agree.
  agrees(x, [](const Tensors& t) { return embedding(t[0] * 0 + 1, t[1], {.padding_idx = 3}); });
}
TEST_CASE("device: one_hot", "[device]") {
  agrees_in_value({integers({3, 4}, 0, 5)}, [](const Tensors& t) {
    return Tensors{one_hot(t[0]), one_hot(t[0], 9)};
  });
}
TEST_CASE("device: nonzero", "[device]") {
  agrees_in_value({coins({3, 4, 5})}, [](const Tensors& t) { return nonzero(t[0]); });
}
TEST_CASE("device: an index outside is an error there, too", "[device]") {
  agrees_in_value({image(), integers({2, 3, 6, 5}, 0, 9)},
                  [](const Tensors& t) { return gather(t[0], 2, t[1]); });
  agrees_in_value({image(), integers({7}, 0, 9)},
                  [](const Tensors& t) { return index_select(t[0], 1, t[1]); });
}
