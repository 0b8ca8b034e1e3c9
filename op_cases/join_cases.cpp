// Joining, splitting, rearranging and padding.

#include <algorithm>

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/ops/shape/rearrange.h"

namespace pleat::test {
namespace {

int64_t modulo(int64_t a, int64_t n) { return ((a % n) + n) % n; }

/// A function of [2, 3, 4, 5], whose result at i is the tensor's element at place(i).
OpCase rearranged(const char* name, const Function& call, const Shape& shape,
                  const std::function<Index(const Index&)>& place, const char* variant = "") {
  return {.name = name,
          .inputs = {normal({2, 3, 4, 5})},
          .call = call,
          .reference = moved([shape](const Shape&) { return shape; },
                             [place](const Index& at, const Shape&) { return place(at); }),
          .variant = variant,
          .types = all_types,
          .smooth = {{normal({2, 3, 4, 5})}}};
}

/// Parts along a dimension that begin at `starts`; the last of these is the end.
Reference parts(std::size_t dim, const Index& starts) {
  return [=](const Arrays& x) {
    Arrays all;
    for (std::size_t k = 0; k + 1 < starts.size(); ++k) {
      Shape shape = x[0].shape;
      shape[dim] = starts[k + 1] - starts[k];
      all.push_back(computed(shape, [&](Index at) {
        at[dim] += starts[k];
        return x[0](at);
      }));
    }
    return all;
  };
}

OpCase splitting(const char* name, const Function& call, const Reference& reference, Refusal refused) {
  return {.name = name,
          .inputs = {normal({2, 3, 2, 5})},
          .call = call,
          .reference = reference,
          .types = all_types,
          .recorded = "-",
          .refused = {std::move(refused)}};
}

/// Where padding of the low side by `low` finds an element at position i of n, or -1 for the constant. Of
/// what is cropped nothing is read.
int64_t source(PadMode mode, int64_t i, int64_t n, int64_t low, int64_t high) {
  const int64_t cropped = std::max<int64_t>(0, -low);
  n -= cropped + std::max<int64_t>(0, -high);
  i -= std::max<int64_t>(0, low);
  if (i >= 0 && i < n) return cropped + i;
  switch (mode) {
    case PadMode::reflect:
      return cropped + (i < 0 ? -i : 2 * (n - 1) - i);
    case PadMode::replicate:
      return cropped + (i < 0 ? 0 : n - 1);
    case PadMode::circular:
      return cropped + modulo(i, n);
    default:
      return -1;
  }
}

/// The last dimension by 1 and 2, the one before by 3 and 0; or some taken off.
OpCase padding(PadMode mode, const char* variant, const Index& widths) {
  return {.name = "pad",
          .inputs = {normal({2, 2, 4, 5})},
          .call = [mode, widths](const Tensors& x) { return pad(x[0], widths, {.mode = mode, .value = 1}); },
          .reference =
              [mode, widths](const Arrays& x) {
                Shape shape = x[0].shape;
                shape[3] += widths[0] + widths[1];
                shape[2] += widths[2] + widths[3];
                return Arrays{computed(shape, [&](Index at) {
                  at[3] = source(mode, at[3], 5, widths[0], widths[1]);
                  at[2] = source(mode, at[2], 4, widths[2], widths[3]);
                  return at[2] < 0 || at[3] < 0 ? 1 : x[0](at);
                })};
              },
          .variant = variant,
          .types = all_types,
          .smooth = {{normal({1, 1, 4, 5})}}};
}

/// Channels and pixels in another order.
OpCase shuffled(const std::string& name, const Function& call, const Shape& from, const Shape& to,
                const std::function<Index(const Index&)>& place) {
  return {.name = name,
          .inputs = {normal(from)},
          .call = call,
          .reference = moved([to](const Shape&) { return to; },
                             [place](const Index& at, const Shape&) { return place(at); }),
          .types = all_types};
}

OpCase grid_of_axes(MeshgridIndexing indexing) {
  const bool exchanged = indexing == MeshgridIndexing::xy;
  const auto call = [indexing](const Tensors& x) { return meshgrid(x, {.indexing = indexing}); };
  return {.name = "meshgrid",
          .inputs = {normal({3}), normal({4}, 2), normal({2}, 3)},
          .call = call,
          .reference =
              [exchanged](const Arrays& x) {
                Arrays all;
                for (std::size_t k = 0; k < 3; ++k)
                  all.push_back(computed(exchanged ? Shape{4, 3, 2} : Shape{3, 4, 2}, [&](const Index& i) {
                    return x[k]({i[exchanged && k < 2 ? 1 - k : k]});
                  }));
                return all;
              },
          .variant = exchanged ? "xy" : "",
          .types = all_types,
          .recorded = "-",
          .refused = {{{normal({2, 3}), normal({2})}, call, "meshgrid: axes must be vectors"}}};
}

std::vector<OpCase> make() {
  using T = const Tensors&;
  using I = const Index&;
  std::vector<OpCase> cases = {
      {.name = "cat",
       .inputs = {normal({2, 3, 4, 5}), normal({2, 1, 4, 5}, 2), normal({2, 2, 4, 5}, 3)},
       .call = [](T x) { return cat(x, 1); },
       .reference =
           [](const Arrays& x) {
             return Arrays{computed({2, 6, 4, 5}, [&](Index at) {
               std::size_t k = 0;
               for (; at[1] >= x[k].shape[1]; ++k) at[1] -= x[k].shape[1];
               return x[k](at);
             })};
           },
       .types = all_types,
       .smooth = {{normal({2, 3}), normal({2, 1}, 2)}},
       .large = {normal({40, 30, 40}), normal({40, 31, 40}, 2)},
       .refused = {{{normal({2, 3}), normal({3, 3}, 2)}, [](T x) { return cat(x, 1); }, "cat: "},
                   {{normal({2, 3})}, [](T) { return cat({}, 0); }, "cat: "}}},
      {.name = "stack",
       .inputs = {normal({2, 3, 4, 5}), normal({2, 3, 4, 5}, 2)},
       .call = [](T x) { return stack(x); },
       .reference =
           [](const Arrays& x) {
             return Arrays{computed({2, 2, 3, 4, 5}, [&](I i) {
               return x[static_cast<std::size_t>(i[0])]({i[1], i[2], i[3], i[4]});
             })};
           },
       .types = all_types,
       .smooth = {{normal({2, 3}), normal({2, 3}, 2)}},
       .refused = {{{normal({2, 3}), normal({3, 3}, 2)}, [](T x) { return stack(x); }, "stack: "}}},
      {.name = "stack",
       .inputs = {normal({2, 3, 4, 5}), normal({2, 3, 4, 5}, 2)},
       .call = [](T x) { return stack(x, -1); },
       .reference =
           [](const Arrays& x) {
             return Arrays{computed({2, 3, 4, 5, 2}, [&](I i) {
               return x[static_cast<std::size_t>(i[4])]({i[0], i[1], i[2], i[3]});
             })};
           },
       .variant = "last",
       .types = all_types,
       .smooth = {{normal({2, 3}), normal({2, 3}, 2)}}},
      splitting("split", [](T x) { return split(x[0], 2, 3); }, parts(3, {0, 2, 4, 5}),
                {{normal({2, 3})}, [](T x) { return split(x[0], 0); }, "split: "}),
      splitting("split_with_sizes",
                [](T x) {
                  return split_with_sizes(x[0], {1, 0, 3, 1}, 3);
                },
                parts(3, {0, 1, 1, 4, 5}),
                {{normal({2, 3})},
                 [](T x) {
                   return split_with_sizes(x[0], {1, 3});
                 },
                 "split_with_sizes: "}),
      splitting("chunk", [](T x) { return chunk(x[0], 2, 1); }, parts(1, {0, 2, 3}),
                {{normal({2, 3})}, [](T x) { return chunk(x[0], 0); }, "chunk: "}),
      {.name = "unbind",
       .inputs = {normal({2, 3, 2})},
       .call = [](T x) { return unbind(x[0], 1); },
       .reference =
           [](const Arrays& x) {
             Arrays all;
             for (int64_t k = 0; k < 3; ++k)
               all.push_back(computed({2, 2}, [&](I i) { return x[0]({i[0], k, i[1]}); }));
             return all;
           },
       .types = all_types,
       .recorded = "-",
       .refused = {{{normal({2, 3})}, [](T x) { return unbind(x[0], 2); }, "unbind: "},
                   {{normal({})}, [](T x) { return unbind(x[0]); }, "unbind: needs a dimension"}}},
      grid_of_axes(MeshgridIndexing::ij),
      grid_of_axes(MeshgridIndexing::xy),
      rearranged(
          "flip",
          [](T x) {
            return flip(x[0], {0, 2, -1});
          },
          {2, 3, 4, 5},
          [](I i) {
            return Index{1 - i[0], i[1], 3 - i[2], 4 - i[3]};
          }),
      rearranged(
          "rot90", [](T x) { return rot90(x[0]); }, {3, 2, 4, 5},
          [](I i) {
            return Index{i[1], 2 - i[0], i[2], i[3]};
          }),
      rearranged(
          "rot90",
          [](T x) {
            return rot90(x[0], 7, {-1, 1});
          },
          {2, 5, 4, 3},
          [](I i) {
            return Index{i[0], i[3], i[2], 4 - i[1]};
          },
          "backwards"),
      rearranged(
          "rot90", [](T x) { return rot90(x[0], -2); }, {2, 3, 4, 5},
          [](I i) {
            return Index{1 - i[0], 2 - i[1], i[2], i[3]};
          },
          "twice"),
      rearranged(
          "roll",
          [](T x) {
            return roll(x[0], {1, -2}, {1, 3});
          },
          {2, 3, 4, 5},
          [](I i) {
            return Index{i[0], modulo(i[1] - 1, 3), i[2], modulo(i[3] + 2, 5)};
          }),
      rearranged(
          "roll", [](T x) { return roll(x[0], {7}); }, {2, 3, 4, 5},
          [](I i) {
            const int64_t from = modulo(((i[0] * 3 + i[1]) * 4 + i[2]) * 5 + i[3] - 7, 120);
            return Index{from / 60, from / 20 % 3, from / 5 % 4, from % 5};
          },
          "all elements"),
      rearranged(
          "repeat",
          [](T x) {
            return repeat(x[0], {2, 1, 3, 1, 2});
          },
          {2, 2, 9, 4, 10},
          [](I i) {
            return Index{i[1], i[2] % 3, i[3], i[4] % 5};
          }),
      rearranged(
          "tile",
          [](T x) {
            return tile(x[0], {2, 3});
          },
          {2, 3, 8, 15},
          [](I i) {
            return Index{i[0], i[1], i[2] % 4, i[3] % 5};
          }),
      rearranged(
          "repeat_interleave", [](T x) { return repeat_interleave(x[0], 3, 2); }, {2, 3, 12, 5},
          [](I i) {
            return Index{i[0], i[1], i[2] / 3, i[3]};
          }),
      padding(PadMode::constant, "", {1, 2, 3, 0}),
      padding(PadMode::reflect, "reflect", {1, 2, 3, 0}),
      padding(PadMode::replicate, "replicate", {1, 2, 3, 0}),
      padding(PadMode::circular, "circular", {1, 2, 3, 0}),
      padding(PadMode::constant, "cropped", {-1, 2, 1, -1}),
      padding(PadMode::reflect, "reflect, cropped", {-1, 2, 1, -1}),
      padding(PadMode::replicate, "replicate, cropped", {-1, 2, 1, -1}),
      padding(PadMode::circular, "circular, cropped", {-1, 2, 1, -1}),
  };
  cases.push_back(shuffled(
      "pixel_shuffle", [](T x) { return pixel_shuffle(x[0], 2); }, {2, 12, 2, 3}, {2, 3, 4, 6},
      [](I i) {
        return Index{i[0], (i[1] * 2 + i[2] % 2) * 2 + i[3] % 2, i[2] / 2, i[3] / 2};
      }));
  cases.push_back(shuffled(
      "pixel_unshuffle", [](T x) { return pixel_unshuffle(x[0], 2); }, {2, 3, 4, 6}, {2, 12, 2, 3},
      [](I i) {
        return Index{i[0], i[1] / 4, i[2] * 2 + i[1] / 2 % 2, i[3] * 2 + i[1] % 2};
      }));
  cases.push_back(shuffled(
      "channel_shuffle", [](T x) { return channel_shuffle(x[0], 3); }, {2, 6, 2, 3}, {2, 6, 2, 3},
      [](I i) {
        return Index{i[0], i[1] % 3 * 2 + i[1] / 3, i[2], i[3]};
      }));
  for (OpCase& c : cases)
    if (c.name == "tile") c.recorded = "repeat";
  const auto refuse = [&](const char* name, const Shape& shape, const Function& call) {
    for (OpCase& c : cases)
      if (c.name == name) {
        c.refused.push_back({{normal(shape)}, call, (c.name == "tile" ? "repeat" : c.name) + ": "});
        return;
      }
  };
  refuse("flip", {2, 3}, [](T x) { return flip(x[0], {0, 0}); });
  refuse("rot90", {2, 3}, [](T x) { return rot90(x[0], 1, {0}); });
  refuse("rot90", {2, 3}, [](T x) { return rot90(x[0], 1, {0, -2}); });
  refuse("roll", {2, 3}, [](T x) { return roll(x[0], {1, 2}, {0}); });
  refuse("repeat", {2, 3}, [](T x) { return repeat(x[0], {2}); });
  refuse("tile", {2, 3}, [](T x) { return tile(x[0], {-1}); });
  refuse("repeat_interleave", {2, 3}, [](T x) { return repeat_interleave(x[0], -1, 0); });
  refuse("pixel_shuffle", {2, 3}, [](T x) { return pixel_shuffle(x[0], 1); });
  refuse("pixel_shuffle", {2, 6, 2, 2}, [](T x) { return pixel_shuffle(x[0], 2); });
  refuse("pixel_shuffle", {2, 6, 2, 2}, [](T x) { return pixel_shuffle(x[0], 0); });
  refuse("pixel_unshuffle", {2, 6, 2, 3}, [](T x) { return pixel_unshuffle(x[0], 2); });
  refuse("pixel_unshuffle", {2, 6, 2, 2}, [](T x) { return pixel_unshuffle(x[0], -1); });
  refuse("channel_shuffle", {2, 6, 2}, [](T x) { return channel_shuffle(x[0], 4); });
  refuse("channel_shuffle", {6}, [](T x) { return channel_shuffle(x[0], 1); });
  refuse("pad", {2, 3}, [](T x) { return pad(x[0], {1}); });
  refuse("pad", {2, 3}, [](T x) { return pad(x[0], {3, 0}, {.mode = PadMode::reflect}); });
  return cases;
}

}  // namespace

const std::vector<OpCase>& join_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
