// Views.

#include "pleat/autograd/copy.h"
#include "pleat/op_cases/op_case.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::test {
namespace {

using View = Tensor (*)(const Tensor&);
using Place = std::function<Index(const Index& at, const Shape& from)>;

/// A view of [2, 3, 4, 5], of which the element at i is the tensor's at place(i).
OpCase view_case(const char* name, View view, const Shape& shape, const Place& place,
                 const char* variant = "") {
  return {.name = name,
          .inputs = {normal({2, 3, 4, 5})},
          .call = [view](const Tensors& x) { return view(x[0]); },
          .reference = moved([shape](const Shape&) { return shape; }, place),
          .variant = variant,
          .types = all_types};
}

/// Other sizes with the elements in the same order.
OpCase reshaped(const char* name, View view, const Shape& shape, const char* variant = "",
                Shape of = {2, 3, 4, 5}) {
  OpCase c = view_case(name, view, shape, nullptr, variant);
  c.inputs = {normal(of)};
  c.reference = [shape](const Arrays& x) { return Arrays{{shape, x[0].elements}}; };
  return c;
}

Index replaced(Index at, std::size_t d, int64_t value) {
  at[d] = value;
  return at;
}

Index inserted(Index at, std::size_t d, int64_t value) {
  at.insert(at.begin() + static_cast<std::ptrdiff_t>(d), value);
  return at;
}

Index erased(Index at, std::size_t d) {
  at.erase(at.begin() + static_cast<std::ptrdiff_t>(d));
  return at;
}

/// A refused view of [2, 3].
Refusal refusal(View view, const char* words) {
  return {{normal({2, 3})}, [view](const Tensors& x) { return view(x[0]); }, words};
}

std::vector<OpCase> make() {
  using X = const Tensor&;
  using I = const Index&;
  using S = const Shape&;
  return {
      recorded_as("-", reshaped(
                           "view",
                           [](X x) {
                             return view(to_format(x, MemoryFormat::contiguous), {6, 20});
                           },
                           {6, 20}, "contiguous")),
      refusing(reshaped("view",
                        [](X x) {
                          return view(x, {2, 1, 3, 2, 2, 5});
                        },
                        {2, 1, 3, 2, 2, 5}),
               {refusal([](X x) { return view(x, {4}); }, "view: "),
                refusal([](X x) { return view(transpose(x, 0, 1), {6}); }, "view: ")}),
      refusing(reshaped("reshape",
                        [](X x) {
                          return reshape(x, {4, -1});
                        },
                        {4, 30}),
               {refusal(
                    [](X x) {
                      return reshape(x, {4, -1});
                    },
                    "reshape: "),
                refusal(
                    [](X x) {
                      return reshape(x, {-1, -1});
                    },
                    "reshape: ")}),
      refusing(view_case(
                   "permute",
                   [](X x) {
                     return permute(x, {2, 0, 3, 1});
                   },
                   {4, 2, 5, 3},
                   [](I i, S) {
                     return Index{i[1], i[3], i[0], i[2]};
                   }),
               {refusal(
                    [](X x) {
                      return permute(x, {0, 0});
                    },
                    "permute: "),
                refusal([](X x) { return permute(x, {0}); }, "permute: ")}),
      refusing(view_case(
                   "transpose", [](X x) { return transpose(x, 1, -1); }, {2, 5, 4, 3},
                   [](I i, S) {
                     return Index{i[0], i[3], i[2], i[1]};
                   }),
               {refusal([](X x) { return transpose(x, 0, 2); }, "transpose: ")}),
      refusing(recorded_as("permute", view_case(
                                          "movedim",
                                          [](X x) {
                                            return movedim(x, {3, 0}, {1, -1});
                                          },
                                          {3, 5, 4, 2},
                                          [](I i, S) {
                                            return Index{i[3], i[0], i[2], i[1]};
                                          })),
               {refusal(
                    [](X x) {
                      return movedim(x, {0, 1}, {1});
                    },
                    "movedim: needs a place for each"),
                refusal(
                    [](X x) {
                      return movedim(x, {0, 1}, {1, -1});
                    },
                    "movedim: one is named twice")}),
      refusing(view_case(
                   "expand",
                   [](X x) {
                     return expand(unsqueeze(select(x, 0, 1), 1), {2, 3, 4, 4, 5});
                   },
                   {2, 3, 4, 4, 5},
                   [](I i, S) {
                     return Index{1, i[1], i[3], i[4]};
                   }),
               {refusal(
                    [](X x) {
                      return expand(x, {4, 3});
                    },
                    "expand: "),
                refusal([](X x) { return expand(x, {3}); }, "expand: ")}),
      refusing(view_case(
                   "slice", [](X x) { return slice(x, 3, 1, 5, 2); }, {2, 3, 4, 2},
                   [](I i, S) { return replaced(i, 3, 1 + 2 * i[3]); }),
               {refusal([](X x) { return slice(x, 2, 0, 1); }, "slice: "),
                refusal([](X x) { return slice(x, 0, 0, 1, 0); }, "slice: ")}),
      view_case(
          "slice", [](X x) { return slice(x, -1, -4, -1); }, {2, 3, 4, 3},
          [](I i, S) { return replaced(i, 3, 1 + i[3]); }, "from the end"),
      view_case(
          "slice", [](X x) { return slice(x, 0, 2, 2); }, {0, 3, 4, 5}, [](I i, S) { return i; },
          "of nothing"),
      refusing(view_case(
                   "narrow", [](X x) { return narrow(x, 1, 1, 2); }, {2, 2, 4, 5},
                   [](I i, S) { return replaced(i, 1, 1 + i[1]); }),
               {refusal([](X x) { return narrow(x, 1, 2, 2); }, "narrow: ")}),
      refusing(view_case(
                   "select", [](X x) { return select(x, 2, -1); }, {2, 3, 5},
                   [](I i, S) { return inserted(i, 2, 3); }),
               {refusal([](X x) { return select(x, 1, 3); }, "select: ")}),
      view_case(
          "select", [](X x) { return select(select(select(x, 1, 2), 0, 0), 0, 3); }, {5},
          [](I i, S) {
            return Index{0, 2, 3, i[0]};
          },
          "of a part of a part"),
      reshaped("squeeze", [](X x) { return squeeze(x); }, {3, 5}, "", {3, 1, 5, 1}),
      reshaped("squeeze", [](X x) { return squeeze(x, {1}); }, {3, 5, 1}, "one dimension", {3, 1, 5, 1}),
      refusing(reshaped("unsqueeze", [](X x) { return unsqueeze(x, 2); }, {2, 3, 1, 4, 5}),
               {refusal([](X x) { return unsqueeze(x, 3); }, "unsqueeze: ")}),
      refusing(reshaped("flatten", [](X x) { return flatten(x, 1, 2); }, {2, 12, 5}),
               {refusal([](X x) { return flatten(x, 1, 0); }, "flatten: ")}),
      refusing(reshaped("unflatten",
                        [](X x) {
                          return unflatten(x, 2, {2, -1});
                        },
                        {2, 3, 2, 2, 5}),
               {refusal(
                   [](X x) {
                     return unflatten(x, 1, {2, 2});
                   },
                   "unflatten: ")}),
      refusing(view_case(
                   "unfold_dimension", [](X x) { return unfold_dimension(x, 3, 3, 1); }, {2, 3, 4, 3, 3},
                   [](I i, S) { return erased(replaced(i, 3, i[3] + i[4]), 4); }),
               {refusal([](X x) { return unfold_dimension(x, 1, 4, 1); }, "unfold_dimension: ")}),
      view_case(
          "unfold_dimension", [](X x) { return unfold_dimension(x, -2, 2, 2); }, {2, 3, 2, 5, 2},
          [](I i, S) { return erased(replaced(i, 2, 2 * i[2] + i[4]), 4); }, "in steps"),
      refusing(view_case(
                   "diagonal", [](X x) { return diagonal(x, 1, 2, 3); }, {2, 3, 4},
                   [](I i, S) {
                     return Index{i[0], i[1], i[2], i[2] + 1};
                   }),
               {refusal([](X x) { return diagonal(x, 0, 1, 1); }, "diagonal: ")}),
      view_case(
          "diagonal", [](X x) { return diagonal(x, -1, 2, 0); }, {3, 5, 2},
          [](I i, S) {
            return Index{i[2], i[0], i[2] + 1, i[1]};
          },
          "below"),
  };
}

}  // namespace

const std::vector<OpCase>& shape_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
