#pragma once

#include <limits>
#include <string>
#include <vector>

#include "pleat/op_cases/inputs.h"
#include "pleat/op_cases/reference.h"

/// The table of public functions: a row says how a function is called and what it must give. Every test of
/// this folder runs over all rows (all_cases.h), `pleat-bench ops` over those of pointwise functions
/// (survey.h). A family of functions is a file `NAME_cases.cpp` beside this one.

namespace pleat::test {

/// The types a function takes.
struct Types {
  bool floating = true, integers = false, boolean = false;
};
inline constexpr Types floating_types{};
inline constexpr Types number_types{.integers = true};
inline constexpr Types all_types{.integers = true, .boolean = true};

/// The type of a result for the type of the floating inputs.
using ResultType = DType (*)(DType);
DType same_type(DType dtype);
DType floating_type(DType dtype);  ///< float32 for integers and truth values
DType sum_type(DType dtype);       ///< int64 for integers and truth values
DType number_type(DType dtype);    ///< int64 for truth values, which meet an integer
DType index_type(DType);           ///< int64
DType truth_type(DType);           ///< bool

/// A call that throws an error with these words and leaves its tensors as they were.
struct Refusal {
  Tensors inputs;
  Function call;
  std::string words;
};

/// The form of a function that writes into its first input.
struct InPlace {
  std::string name;
  Function call = {};
};

struct OpCase {
  /// Of the public function.
  std::string name;
  /// float64 inputs take the type under test; those of int64 and bool stay.
  Tensors inputs;
  Function call;
  /// From float64 inputs. Without it the results in all types and layouts are compared with those in float64.
  Reference reference = {};
  /// Where the values are tested when there is no reference: a file in tests/.
  std::string values_in = {};
  /// What sets this row apart from others of the function.
  std::string variant = {};
  Types types = {};
  std::vector<ResultType> results = {same_type};  ///< of each result; the last goes for the rest
  /// Computes each element by itself: its bits depend on no other and not on the layout, inputs of shape {}
  /// and {0, 3} give results of that shape, and without slack half types are rounded once.
  bool elementwise = false;
  /// How often it can be differentiated with respect to its floating inputs: 0, 1 or, for any number, 2.
  int order = 2;
  /// Inputs where it is smooth, for derivatives; of few elements. None: `inputs`.
  std::vector<Tensors> smooth = {};
  /// How many times more than one rounding results may be off.
  double slack = 1;
  /// Whether bfloat16 on the CPU is computed to 2^-12 before it is rounded.
  bool coarse_in_bfloat16 = false;
  /// Inputs of so many elements that several threads compute. None: their number is not tested.
  Tensors large = {};
  InPlace in_place = {};
  /// Of the op in a profile, where that is not the function's; "-": of several other functions.
  std::string recorded = {};
  std::vector<Refusal> refused = {};

  Tensors run(const Tensors& x) const { return call(x).tensors(); }
  std::string title() const { return variant.empty() ? name : name + ", " + variant; }
};

/// The families, in the order of the tests.
// clang-format off
#define PLEAT_OP_FAMILIES(DO, ...) \
  DO(math, __VA_ARGS__) DO(activation, __VA_ARGS__) DO(arithmetic, __VA_ARGS__) \
  DO(compare, __VA_ARGS__) DO(copy, __VA_ARGS__) DO(reduce, __VA_ARGS__) \
  DO(scan, __VA_ARGS__) DO(shape, __VA_ARGS__) DO(join, __VA_ARGS__) \
  DO(index, __VA_ARGS__) DO(search, __VA_ARGS__) DO(scatter, __VA_ARGS__) DO(matmul, __VA_ARGS__) \
  DO(recurrent, __VA_ARGS__) DO(conv, __VA_ARGS__) DO(pool, __VA_ARGS__) \
  DO(unpool, __VA_ARGS__) DO(sample, __VA_ARGS__) DO(norm, __VA_ARGS__) DO(loss, __VA_ARGS__) \
  DO(margin_loss, __VA_ARGS__)
// clang-format on

#define PLEAT_DECLARE_FAMILY(family, ...) const std::vector<OpCase>& family##_ops();
PLEAT_OP_FAMILIES(PLEAT_DECLARE_FAMILY)

struct OpFamily {
  const char* name;
  const std::vector<OpCase>& (*cases)();
};
const std::vector<OpFamily>& op_families();

/// All types that a function takes, float64 first.
std::vector<DType> types_of(const OpCase& c);
/// The inputs in a type, on the default device: integers are rounded away from 0 (uint8: their
/// absolute values), truth values say which are above 0.
Tensors typed(const Tensors& inputs, DType dtype);
/// "contiguous", "transposed", "gaps", "offset", "channels_last", "expanded" along the first dimension.
const std::vector<std::string>& op_layouts();
/// Has the elements of x but for "expanded", which repeats those of the first index.
Tensor in_layout(const Tensor& x, const std::string& layout);
Tensors in_layout(const Tensors& inputs, const std::string& layout);
/// The half of the distance of 1 to the next number; 0 for integers.
double rounding(DType dtype);

// Parts of rows.

inline constexpr double infinity = std::numeric_limits<double>::infinity();

struct Range {
  double low, high;
};
/// A function of each element: values in `values`, derivatives in each of `smooth`.
OpCase unary(const std::string& name, Tensor (*function)(const Tensor&), double (*reference)(double),
             Range values, const std::vector<Range>& smooth);

/// The row with calls that are refused.
OpCase refusing(OpCase c, std::vector<Refusal> refused);
/// The row under another name in a profile; "-": of several other functions.
OpCase recorded_as(const std::string& name, OpCase c);

}  // namespace pleat::test
