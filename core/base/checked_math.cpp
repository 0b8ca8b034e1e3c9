#include "pleat/core/base/checked_math.h"

#include "pleat/core/base/format.h"

namespace pleat {

int64_t checked_add(int64_t a, int64_t b, const char* op) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) fail<ShapeError>("{}: {} + {} does not fit 64 bits", op, a, b);
  return result;
}

int64_t checked_subtract(int64_t a, int64_t b, const char* op) {
  int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) fail<ShapeError>("{}: {} - {} does not fit 64 bits", op, a, b);
  return result;
}

int64_t checked_multiply(int64_t a, int64_t b, const char* op) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) fail<ShapeError>("{}: {} * {} does not fit 64 bits", op, a, b);
  return result;
}

int64_t checked_negate(int64_t a, const char* op) { return checked_subtract(0, a, op); }

}  // namespace pleat
