#include "pleat/core/tensor/convert.h"

#include <algorithm>
#include <type_traits>

namespace pleat {
namespace {

template <class To, class From>
void convert_run(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step, int64_t n) {
  To* out = reinterpret_cast<To*>(to);
  const From* in = reinterpret_cast<const From*>(from);
  if (to_step == 1 && from_step == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
  } else if (to_step == 1 && from_step == 0) {
    std::fill_n(out, n, convert<To>(*in));
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * to_step] = convert<To>(in[i * from_step]);
  }
}

/// The same by the two loops of float: half types go through float anyway, and so there are fewer loops.
template <class To, class From>
void convert_run_by_float(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step,
                          int64_t n) {
  constexpr int64_t block = 512;
  alignas(64) float buffer[block];
  std::byte* const floats = reinterpret_cast<std::byte*>(buffer);
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = std::min(block, n - first);
    convert_run<float, From>(floats, 1, from + first * from_step * int64_t{sizeof(From)}, from_step, count);
    convert_run<To, float>(to + first * to_step * int64_t{sizeof(To)}, to_step, floats, 1, count);
  }
}

template <class To, class From>
constexpr ConvertRun run_for() {
  constexpr bool has_half = is_half(dtype_of<To>()) || is_half(dtype_of<From>());
  constexpr bool has_float = std::is_same_v<To, float> || std::is_same_v<From, float>;
  if constexpr (has_half && !has_float && !std::is_same_v<To, From>)
    return convert_run_by_float<To, From>;
  else
    return convert_run<To, From>;
}

}  // namespace

ConvertRun find_convert_run(DType to, DType from) {
  return dispatch(to, [&]<class To>(Type<To>) {
    return dispatch(from, [&]<class From>(Type<From>) { return run_for<To, From>(); });
  });
}

}  // namespace pleat
