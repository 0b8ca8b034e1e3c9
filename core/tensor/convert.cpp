#include "pleat/core/tensor/convert.h"

#include <algorithm>

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

}  // namespace

ConvertRun find_convert_run(DType to, DType from) {
  return dispatch(to, [&]<class To>(Type<To>) {
    return dispatch(from, [&]<class From>(Type<From>) -> ConvertRun { return convert_run<To, From>; });
  });
}

}  // namespace pleat
