// Private header: not installed.
#pragma once

#include <cstdint>

/// The arithmetic of sizes, all of it: what a caller gives may lie anywhere in int64.

namespace pleat {

/// a + b, a - b, a * b, -a; ShapeError naming `op` when the result does not fit int64.
int64_t checked_add(int64_t a, int64_t b, const char* op);
int64_t checked_subtract(int64_t a, int64_t b, const char* op);
int64_t checked_multiply(int64_t a, int64_t b, const char* op);
int64_t checked_negate(int64_t a, const char* op);

/// a / b rounded up, for any a and b >= 1.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

/// The next multiple of b from a on, of sizes that are known to be far from the end of int64.
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace pleat
