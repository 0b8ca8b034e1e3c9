#include "pleat/core/base/small_vector.h"

#include <cstdint>
#include <list>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "pleat/core/tensor/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

using Small = SmallVector<int64_t, 3>;
using Vector = std::vector<int64_t>;

/// A step of both, the small one and the one that it must be like.
template <class F>
void both(Small& a, Vector& b, const F& step) {
  step(a);
  step(b);
  CHECK(Vector(a) == b);
  CHECK(a.size() == b.size());
  CHECK(a.empty() == b.empty());
}

}  // namespace

TEST_CASE("a small vector is like a vector, with and without memory of its own", "[core][cpu]") {
  for (std::size_t start = 0; start < 6; ++start) {
    CAPTURE(start);
    Small a(start, 7);
    Vector b(start, 7);
    for (int64_t i = 0; i < 3; ++i) both(a, b, [&](auto& v) { v.push_back(i); });
    both(a, b, [](auto& v) { v.insert(v.begin() + 1, 11); });
    both(a, b, [](auto& v) { v.insert(v.end(), v.back()); });
    both(a, b, [](auto& v) { v.insert(v.begin(), 2, v[1]); });  // an element of its own, which moves
    both(a, b, [](auto& v) { v.push_back(v.front()); });
    both(a, b, [](auto& v) { v.insert(v.begin() + 2, {5, 6, 8}); });
    both(a, b, [](auto& v) { v.erase(v.begin() + 1); });
    both(a, b, [](auto& v) { v.erase(v.begin() + 1, v.end() - 1); });
    both(a, b, [](auto& v) { v.resize(5, v[0]); });
    both(a, b, [](auto& v) { v.resize(2); });
    both(a, b, [](auto& v) { v.pop_back(); });
    both(a, b, [](auto& v) { v.assign(4, v[0]); });
    const std::list<int64_t> list{3, 1, 2};
    both(a, b, [&](auto& v) { v.assign(list.begin(), list.end()); });
    std::istringstream text("9 8 7 6 5");
    const std::istream_iterator<int64_t> first(text), end;
    const Small read(first, end);
    CHECK(Vector(read) == Vector{9, 8, 7, 6, 5});
    both(a, b, [](auto& v) { v.clear(); });
  }
}

TEST_CASE("a small vector is copied and moved, from either place to either", "[core][cpu]") {
  for (std::size_t from = 0; from < 7; ++from)
    for (std::size_t to = 0; to < 7; ++to) {
      CAPTURE(from, to);
      Vector values;
      for (std::size_t i = 0; i < from; ++i) values.push_back(static_cast<int64_t>(10 * i));
      const Small source(values);
      Small copied(to, 1), moved(to, 1), gone(source);
      copied = source;
      CHECK(copied == source);
      moved = std::move(gone);
      CHECK(moved == source);
      CHECK(gone.empty());
      gone.push_back(4);
      CHECK(gone == Small{4});
      const Small made(std::move(moved));
      CHECK(made == source);
      Small& same = copied;
      copied = same;
      CHECK(copied == source);
      CHECK((source == values) == true);
    }
  CHECK(Small{1, 2} < Small{1, 3});
  CHECK(Small{1, 2} < Small{1, 2, 0});
  CHECK_THROWS_AS(Small{1}.at(1), std::out_of_range);
}

TEST_CASE("a shape goes where a vector is asked for, and comes from one", "[core][cpu]") {
  const Shape shape{2, 3, 4, 5, 6, 7, 8};  // more than lie in it
  const auto as_vector = [](const Vector& sizes) { return sizes; };
  CHECK(as_vector(shape) == Vector{2, 3, 4, 5, 6, 7, 8});
  CHECK(Shape(as_vector(shape)) == shape);
  const Vector sizes = shape;
  CHECK(sizes == shape);
  CHECK(shape == sizes);
}
