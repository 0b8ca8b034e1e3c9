#include "pleat/core/tensor/transpose.h"

#include <numeric>
#include <vector>

#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

template <class T>
void check_transposed(int64_t rows, int64_t columns) {
  CAPTURE(sizeof(T), rows, columns);
  const int64_t from_row = columns + 3;
  const int64_t to_row = rows + 2;
  std::vector<T> from(static_cast<std::size_t>(rows * from_row));
  std::iota(from.begin(), from.end(), T(1));
  std::vector<T> to(static_cast<std::size_t>(columns * to_row)), expected = to;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      expected[static_cast<std::size_t>(c * to_row + r)] = from[static_cast<std::size_t>(r * from_row + c)];
  transpose_matrix(to.data(), to_row, from.data(), from_row, rows, columns);
  CHECK(to == expected);  // between the rows, too
}

}  // namespace

TEST_CASE("matrices of elements of any size are transposed", "[transpose]") {
  for (const int64_t rows : {0, 1, 3, 8, 16, 17, 40})
    for (const int64_t columns : {0, 1, 7, 8, 16, 31, 64, 65, 150}) {
      check_transposed<unsigned char>(rows, columns);
      check_transposed<unsigned short>(rows, columns);
      check_transposed<float>(rows, columns);
      check_transposed<double>(rows, columns);
    }
}
