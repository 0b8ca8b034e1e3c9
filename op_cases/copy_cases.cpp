// Copies, casts, changes of layout, and dropout.

#include <cmath>

#include "pleat/autograd/copy.h"
#include "pleat/op_cases/op_case.h"
#include "pleat/ops/elementwise/dropout.h"

namespace pleat::test {
namespace {

const Shape image{2, 3, 5, 4};

double same(double x) { return x; }

OpCase copying(const char* name, const Function& call) {
  return {.name = name,
          .inputs = {uniform(image, -9, 9)},
          .call = call,
          .reference = each(same),
          .types = all_types,
          .smooth = {{normal({2, 2, 1, 2})}}};
}

OpCase casting(DType dtype, ResultType result, double (*reference)(double)) {
  OpCase c = copying("cast", [dtype](const Tensors& x) { return cast(x[0], dtype); });
  c.variant = "to " + std::string(pleat::name(dtype));
  c.inputs = {uniform(image, 0, 9)};
  c.reference = each(reference);
  c.results = {result};
  c.elementwise = true;
  if (!is_floating(dtype)) c.order = 0;
  if (dtype == float32) c.recorded = "-";  // of float32 there is nothing to do
  return c;
}

/// Each call draws the same numbers.
template <class F>
Function drawn(F f) {
  return [f](const Tensors& x) {
    Generator generator(3);
    return f(x[0], generator);
  };
}

OpCase dropping(const char* name, const Function& call) {
  return {.name = name,
          .inputs = {uniform(image, 0.5, 1)},
          .call = call,
          .values_in = "ops/dropout_test.cpp",
          .smooth = {{normal({2, 2, 1, 2})}}};
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases = {
      casting(
          float64, [](DType) { return float64; }, same),
      casting(
          float32, [](DType) { return float32; }, same),
      casting(
          bfloat16, [](DType) { return bfloat16; }, same),
      casting(
          float16, [](DType) { return float16; }, same),
      casting(
          pleat::int64, [](DType) { return pleat::int64; }, [](double x) { return std::trunc(x); }),
      casting(
          pleat::int32, [](DType) { return pleat::int32; }, [](double x) { return std::trunc(x); }),
      casting(
          uint8, [](DType) { return uint8; }, [](double x) { return std::trunc(x); }),
      casting(boolean, truth_type, [](double x) { return x != 0 ? 1.0 : 0.0; }),
      copying("clone", [](const Tensors& x) { return clone(x[0]); }),
      copying("to_format",
              [](const Tensors& x) {
                return to_format(
                    x[0], x[0].is_contiguous() ? MemoryFormat::channels_last : MemoryFormat::contiguous);
              }),
      copying("to_device",
              [](const Tensors& x) { return to_device(to_device(x[0], Device()), x[0].device()); }),
      {.name = "copy_",
       .inputs = {normal(image), normal({3, 1, 4}, 2)},
       .call = [](const Tensors& x) { return copy_(clone(x[0]), x[1]); },
       .reference = each([](double, double b) { return b; }),
       .types = all_types,
       .smooth = {{normal({2, 3}), normal({3}, 2)}},
       .refused = {{{normal({2}), normal({3})},
                    [](const Tensors& x) { return copy_(x[0], x[1]); },
                    "copy: "}}},
      dropping("dropout", drawn([](const Tensor& x, Generator& g) { return dropout(x, 0.4, true, g); })),
      dropping("channel_dropout",
               drawn([](const Tensor& x, Generator& g) { return channel_dropout(x, 0.4, true, g); })),
  };
  OpCase &dropout_case = cases[cases.size() - 2], &channels = cases.back();
  dropout_case.large = {normal({70001})};
  channels.large = {normal({200, 300, 2, 2})};
  cases[cases.size() - 4].recorded = "-";  // on one device there is nothing to do
  channels.recorded = "dropout";
  for (std::size_t i = cases.size() - 2; i < cases.size(); ++i)
    cases[i].refused = {{{normal({2, 2, 1})},
                         drawn([](const Tensor& x, Generator& g) { return dropout(x, 1.5, true, g); }),
                         "dropout: "}};
  return cases;
}

}  // namespace

const std::vector<OpCase>& copy_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
