#include "pleat/core/tensor/transpose.h"

#include <memory>
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

/// Of rows that begin cache lines, in each way of storing.
template <class T>
void check_stores(int64_t rows, int64_t columns) {
  constexpr int64_t line = cache_line / static_cast<int64_t>(sizeof(T));
  const int64_t from_row = columns + 5, to_row = (rows + line - 1) / line * line + line;
  std::vector<T> from(static_cast<std::size_t>(rows * from_row));
  std::iota(from.begin(), from.end(), T(1));
  for (const Stores stores : {Stores::cached, Stores::fetched, Stores::streamed}) {
    CAPTURE(sizeof(T), rows, columns, stores);
    const std::size_t size = static_cast<std::size_t>(columns * to_row);
    std::vector<T> room(size + static_cast<std::size_t>(line), T(7));
    void* place = room.data();
    std::size_t space = room.size() * sizeof(T);
    T* const to = static_cast<T*>(std::align(cache_line, size * sizeof(T), place, space));
    transpose_matrix(to, to_row, from.data(), from_row, rows, columns, stores);
    end_streaming();
    bool same = true;
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t r = 0; r < to_row; ++r)
        same = same &&
               to[c * to_row + r] == (r < rows ? from[static_cast<std::size_t>(r * from_row + c)] : T(7));
    CHECK(same);
  }
}

}  // namespace

TEST_CASE("results of a transposition are written to the caches or past them", "[transpose]") {
  for (const int64_t rows : {1, 15, 16, 64, 100, 256})
    for (const int64_t columns : {1, 8, 31, 32, 100, 300}) {
      check_stores<unsigned char>(rows, columns);
      check_stores<unsigned short>(rows, columns);
      check_stores<float>(rows, columns);
      check_stores<double>(rows, columns);
    }
}

TEST_CASE("matrices of elements of any size are transposed", "[transpose]") {
  for (const int64_t rows : {0, 1, 3, 8, 16, 17, 40})
    for (const int64_t columns : {0, 1, 7, 8, 16, 31, 64, 65, 150}) {
      check_transposed<unsigned char>(rows, columns);
      check_transposed<unsigned short>(rows, columns);
      check_transposed<float>(rows, columns);
      check_transposed<double>(rows, columns);
    }
}
