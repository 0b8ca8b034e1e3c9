// Reading and writing by indices and masks.

#include <algorithm>

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/index/index.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

/// `x` after `write` for each element of the index, in its order.
Reference written(const std::function<void(Array& y, const Index& at, const Arrays& x)>& write,
                  std::size_t index) {
  return [=](const Arrays& x) {
    Array y = x[0];
    (void)computed(x[index].shape, [&](const Index& at) {
      write(y, at, x);
      return 0.0;
    });
    return Arrays{y};
  };
}

/// An index for each element, along dimension 2 of [2, 3, 4, 5], with places that come twice and more.
Tensor wide_index() { return integers({2, 3, 6, 5}, 0, 4); }
Index to_place(Index at, const Array& index, std::size_t dim) {
  at[dim] = static_cast<int64_t>(index(at));
  return at;
}

OpCase scattering(const char* name, const Function& call, InPlace in_place,
                  const std::function<void(double&, double)>& write) {
  return {.name = name,
          .inputs = {normal({2, 3, 4, 5}), wide_index(), normal({2, 3, 6, 5}, 2)},
          .call = call,
          .reference = written([write](Array& y, const Index& at,
                                       const Arrays& x) { write(y(to_place(at, x[1], 2)), x[2](at)); },
                               1),
          .types = all_types,
          .smooth = {{normal({2, 1, 4, 1}), integers({2, 1, 6, 1}, 0, 4), normal({2, 1, 6, 1}, 2)}},
          .large = {normal({30, 40, 50, 2}), integers({30, 40, 60, 2}, 0, 50), normal({30, 40, 60, 2}, 2)},
          .in_place = std::move(in_place)};
}

/// Rows of dimension 1 of [2, 3, 4, 5].
OpCase of_rows(const char* name, const Function& call, int64_t rows, bool distinct, InPlace in_place,
               const std::function<void(double&, double)>& write) {
  const Tensor index = distinct ? from_vector<int64_t>({2, 0}, {2}, Device()) : integers({rows}, 0, 3);
  return {.name = name,
          .inputs = {normal({2, 3, 4, 5}), index, normal({2, index.size(0), 4, 5}, 2)},
          .call = call,
          .reference = written(
              [write](Array& y, const Index& at, const Arrays& x) {
                Index to = at;
                to[1] = static_cast<int64_t>(x[1]({at[1]}));
                write(y(to), x[2](at));
              },
              2),
          .types = all_types,
          .smooth = {{normal({2, 3, 2}), index, normal({2, index.size(0), 2}, 2)}},
          .in_place = std::move(in_place)};
}

/// At places of the first two dimensions of [2, 3, 4, 5].
OpCase put(const char* variant, const Function& call, bool accumulate, InPlace in_place) {
  const Tensor first = from_vector<int64_t>(
      accumulate ? std::vector<int64_t>{1, 0, 1, 1} : std::vector<int64_t>{1, 0, 0, 1}, {4}, Device());
  const Tensor second = from_vector<int64_t>({2, 1, 0, accumulate ? 2 : 0}, {4}, Device());
  return {.name = "index_put",
          .inputs = {normal({2, 3, 4, 5}), first, second, normal({4, 4, 5}, 2)},
          .call = call,
          .reference = written(
              [accumulate](Array& y, const Index& at, const Arrays& x) {
                double& to = y(
                    {static_cast<int64_t>(x[1]({at[0]})), static_cast<int64_t>(x[2]({at[0]})), at[1], at[2]});
                to = accumulate ? to + x[3](at) : x[3](at);
              },
              3),
          .variant = variant,
          .types = all_types,
          .smooth = {{normal({2, 3, 2}), first, second, normal({4, 2}, 2)}},
          .in_place = std::move(in_place)};
}

void set(double& to, double value) { to = value; }
void add(double& to, double value) { to += value; }

/// What is added are numbers, and a truth value cannot hold the 1 that is written.
OpCase of_numbers(OpCase c) {
  c.types = number_types;
  return c;
}

OpCase without_values(OpCase c, const char* variant, const Function& call, InPlace in_place) {
  c.types = number_types;
  c.variant = variant;
  c.call = call;
  c.in_place = std::move(in_place);
  c.large.clear();
  // Written is 1 in the place of the values.
  c.reference = [reference = c.reference](const Arrays& x) {
    Arrays ones = x;
    for (double& n : ones.back().elements) n = 1;
    return reference(ones);
  };
  return c;
}

/// Along a line so long that on a GPU its elements are sorted by where they go.
OpCase long_line(OpCase c) {
  c.variant = "a long line";
  c.inputs = {normal({2, 3, 5}), integers({2, 3, 100}, 0, 5), normal({2, 3, 100}, 2)};
  c.smooth = {{normal({1, 1, 5}), integers({1, 1, 20}, 0, 5), normal({1, 1, 20}, 2)}};
  c.in_place = {};
  c.large = {};
  return c;
}

/// Rows of a table [5, 6].
Reference rows_of_table() {
  return [](const Arrays& x) {
    Shape shape = x[0].shape;
    shape.push_back(x[1].shape[1]);
    return Arrays{computed(shape, [&](Index at) {
      const int64_t column = at.back();
      at.pop_back();
      return x[1]({static_cast<int64_t>(x[0](at)), column});
    })};
  };
}

std::vector<OpCase> make_scatter() {
  const OpCase scatter_case = scattering(
      "scatter", [](T x) { return scatter(x[0], 2, x[1], x[2]); },
      {"scatter_", [](T x) { return scatter_(x[0], 2, x[1], x[2]); }}, set);
  const OpCase add_case = of_numbers(scattering(
      "scatter_add", [](T x) { return scatter_add(x[0], 2, x[1], x[2]); },
      {"scatter_add_", [](T x) { return scatter_add_(x[0], 2, x[1], x[2]); }}, add));
  OpCase fill_case = of_rows("index_fill", nullptr, 2, true, {}, set);
  fill_case.recorded = "index_copy";
  const OpCase put_case = put("",
                              [](T x) {
                                return index_put(x[0], {x[1], x[2]}, x[3]);
                              },
                              false, {"index_put_", [](T x) {
                                        return index_put_(x[0], {x[1], x[2]}, x[3]);
                                      }});
  const Tensor small = normal({3, 4});
  const Tensor zero = from_vector<int64_t>({0}, {1}, Device());
  std::vector<OpCase> cases = {
      scatter_case,
      without_values(scatter_case, "a number", [](T x) { return scatter(x[0], 2, x[1], 1); }, {}),
      long_line(scatter_case),
      add_case,
      long_line(add_case),
      of_numbers(of_rows(
          "index_add", [](T x) { return index_add(x[0], 1, x[1], x[2]); }, 7, false,
          {"index_add_", [](T x) { return index_add_(x[0], 1, x[1], x[2]); }}, add)),
      refusing(
          of_rows(
              "index_copy", [](T x) { return index_copy(x[0], 1, x[1], x[2]); }, 2, true,
              {"index_copy_", [](T x) { return index_copy_(x[0], 1, x[1], x[2]); }}, set),
          {{{small, zero, normal({3, 1})}, [](T x) { return index_copy(x[0], 2, x[1], x[2]); }, "index_copy"},
           {{small, zero, normal({2, 1})},
            [](T x) { return index_copy(x[0], 1, x[1], x[2]); },
            "index_copy"}}),
      without_values(fill_case, "", [](T x) { return index_fill(x[0], 1, x[1], 1); },
                     {"index_fill_", [](T x) { return index_fill_(x[0], 1, x[1], 1); }}),
      refusing(
          put_case,
          {{{small, integers({1}, 3, 4)},
            [](T x) { return index_put(x[0], {x[1]}, 1); },
            "index_put: index 3 at [0] is outside [-3, 3)"},
           {{small, zero},
            [](T x) {
              return index_put(x[0], {x[1], x[1], x[1]}, 1);
            },
            "index_put: 3 indices for a tensor of 2 dimensions, [3, 4]"},
           {{small, coins({2})},
            [](T x) { return index_put(x[0], {x[1]}, 1); },
            "index_put: the mask [2] must have the first sizes of the tensor [3, 4]"},
           {{small, integers({2}, 0, 2), normal({3})},
            [](T x) { return index_put(x[0], {x[1]}, x[2]); },
            "index_put: the values [3] do not broadcast to [2, 4]"},
           {{ops::cast(small, float32), zero, normal({4})},
            [](T x) { return index_put(x[0], {x[1]}, x[2]); },
            "index_put: the values must be float32 like the tensor, got float64"},
           {{integers({3}, 0, 9), zero}, [](T x) { return index_put_(x[0], {x[1]}, 0.5); }, "index_put_"}}),
      of_numbers(put("accumulate",
                     [](T x) {
                       return index_put(x[0], {x[1], x[2]}, x[3], true);
                     },
                     true,
                     {"index_put_",
                      [](T x) {
                        return index_put_(x[0], {x[1], x[2]}, x[3], true);
                      }})),
      without_values(put_case, "a number",
                     [](T x) {
                       return index_put(x[0], {x[1], x[2]}, 1);
                     },
                     {"index_put_",
                      [](T x) {
                        return index_put_(x[0], {x[1], x[2]}, 1);
                      }}),
  };
  return cases;
}

std::vector<OpCase> make_read() {
  return {
      {.name = "gather",
       .inputs = {normal({2, 3, 4, 5}), wide_index()},
       .call = [](T x) { return gather(x[0], 2, x[1]); },
       .reference =
           [](const Arrays& x) {
             return Arrays{
                 computed(x[1].shape, [&](const Index& at) { return x[0](to_place(at, x[1], 2)); })};
           },
       .types = all_types,
       .smooth = {{normal({2, 1, 4, 1}), integers({2, 1, 6, 1}, 0, 4)}},
       .large = {normal({30, 40, 50, 2}), integers({30, 40, 60, 2}, 0, 50)},
       .refused = {{{normal({2, 3}), integers({2, 3}, 3, 9)},
                    [](T x) { return gather(x[0], 1, x[1]); },
                    "gather: index"},
                   {{normal({2, 3}), integers({2}, 0, 3)},
                    [](T x) { return gather(x[0], 1, x[1]); },
                    "gather: "}}},
      {.name = "index_select",
       .inputs = {normal({2, 3, 4, 5}), integers({7}, 0, 3)},
       .call = [](T x) { return index_select(x[0], 1, x[1]); },
       .reference =
           [](const Arrays& x) {
             return Arrays{computed({2, 7, 4, 5}, [&](Index at) {
               at[1] = static_cast<int64_t>(x[1]({at[1]}));
               return x[0](at);
             })};
           },
       .types = all_types,
       .smooth = {{normal({2, 3, 2}), integers({4}, 0, 3)}},
       .large = {normal({300, 50, 4}), integers({70}, 0, 50)},
       .refused = {{{normal({2, 3}), integers({4}, 3, 9)},
                    [](T x) { return index_select(x[0], 1, x[1]); },
                    "index_select: index"}}},
      {.name = "masked_select",
       .inputs = {normal({2, 3, 4, 5}), coins({2, 3, 4, 5})},
       .call = [](T x) { return masked_select(x[0], x[1]); },
       .reference =
           [](const Arrays& x) {
             Numbers found;
             for (std::size_t i = 0; i < x[0].elements.size(); ++i)
               if (x[1].elements[i] != 0) found.push_back(x[0].elements[i]);
             const auto count = static_cast<int64_t>(found.size());
             return Arrays{{{count}, found}};
           },
       .types = all_types,
       .smooth = {{normal({2, 3}), coins({2, 3})}},
       .recorded = "-",
       .refused = {{{normal({2, 3}), integers({2, 3}, 0, 2)},
                    [](T x) { return masked_select(x[0], x[1]); },
                    "masked_select: "}}},
      {.name = "embedding",
       .inputs = {integers({3, 4}, 0, 5), normal({5, 6})},
       .call = [](T x) { return embedding(x[0], x[1]); },
       .reference = rows_of_table(),
       .types = all_types,
       .large = {integers({3000}, 0, 50), normal({50, 60})},
       .refused = {{{integers({2}, 5, 9), normal({5, 2})},
                    [](T x) { return embedding(x[0], x[1]); },
                    "embedding: "}}},
      // The row of the padding is not drawn: its gradient is 0 either way, so that differences agree.
      {.name = "embedding",
       .inputs = {integers({3, 4}, 0, 3), normal({5, 6})},
       .call = [](T x) { return embedding(x[0], x[1], {.padding_idx = 3}); },
       .reference = rows_of_table(),
       .variant = "padding_idx",
       .types = all_types},
      {.name = "one_hot",
       .inputs = {integers({3, 4}, 0, 5)},
       .call = [](T x) { return one_hot(x[0], 9); },
       .reference =
           [](const Arrays& x) {
             return Arrays{computed({3, 4, 9}, [&](const Index& i) {
               return static_cast<double>(x[0]({i[0], i[1]}) == static_cast<double>(i[2]));
             })};
           },
       .types = {.floating = false, .integers = true},
       .results = {index_type},
       .order = 0,
       .refused = {{{integers({2}, 5, 9)}, [](T x) { return one_hot(x[0], 5); }, "one_hot: "}}},
      {.name = "one_hot",
       .inputs = {integers({3, 4}, 0, 5)},
       .call = [](T x) { return one_hot(x[0]); },
       .reference =
           [](const Arrays& x) {
             const double most = *std::max_element(x[0].elements.begin(), x[0].elements.end());
             return Arrays{computed({3, 4, static_cast<int64_t>(most) + 1}, [&](const Index& i) {
               return static_cast<double>(x[0]({i[0], i[1]}) == static_cast<double>(i[2]));
             })};
           },
       .variant = "as many as there are",
       .types = {.floating = false, .integers = true},
       .results = {index_type},
       .order = 0},
      {.name = "nonzero",
       .inputs = {ops::cast(integers({3, 4, 5}, 0, 2), float64)},
       .call = [](T x) { return nonzero(x[0]); },
       .reference =
           [](const Arrays& x) {
             Numbers places;
             int64_t count = 0;
             (void)computed(x[0].shape, [&](const Index& at) {
               if (x[0](at) == 0) return 0.0;
               ++count;
               for (const int64_t i : at) places.push_back(static_cast<double>(i));
               return 0.0;
             });
             return Arrays{{{count, 3}, places}};
           },
       .types = all_types,
       .results = {index_type},
       .order = 0},
  };
}

}  // namespace

const std::vector<OpCase>& index_ops() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all = make_read();
    for (OpCase& c : make_scatter()) all.push_back(std::move(c));
    return all;
  }();
  return cases;
}

}  // namespace pleat::test
