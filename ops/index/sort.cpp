#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/ops/index/index_cuda.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/index/lines.h"

namespace pleat::ops {
namespace {

/// The type of a key: as many bits as the elements have, float's for half types.
template <class T>
using KeyOf =
    std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

/// A number without sign whose order is that of the values: NaN behind all others and equal to itself, -0
/// equal to 0.
template <class T>
KeyOf<T> key_of(T value) {
  using Key = KeyOf<T>;
  constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return key_of(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    // By bits alone: threads that flush denormals would take them for zeros.
    constexpr Key infinity = std::bit_cast<Key>(std::numeric_limits<T>::infinity());
    const Key bits = std::bit_cast<Key>(value);
    const Key size = bits & ~sign;
    const Key ordered = size == 0 ? sign : bits ^ ((size == bits ? Key(0) : ~Key(0)) | sign);
    return size > infinity ? ~Key(0) : ordered;
  } else {
    return static_cast<Key>(static_cast<Key>(value) ^ (std::is_signed_v<T> ? sign : Key(0)));
  }
}

__extension__ typedef unsigned __int128 uint128;

/// A key above its place in the line: no two are equal, and their order is that of the stable sort.
template <class T>
using WordOf = std::conditional_t<sizeof(KeyOf<T>) <= 4, uint64_t, uint128>;

/// The words first ... last - 1 of a line, to `words` on, whose keys are counted from `least` on; a function
/// of plain arrays, which the compiler makes vectors of.
template <class Word, class T>
void make_words(Word* words, const T* from, int64_t step, int64_t first, int64_t last, KeyOf<T> least,
                bool descending) {
  using Key = std::conditional_t<sizeof(Word) == 8, uint32_t, uint64_t>;
  const Key turned = descending ? static_cast<Key>(~KeyOf<T>(0)) : Key(0);
  PLEAT_INDEPENDENT_ITERATIONS
  for (int64_t i = first; i < last; ++i) {
    const Key key = static_cast<Key>(key_of(from[i * step]) - least) ^ turned;
    words[i - first] = (Word{key} << (4 * sizeof(Word))) | static_cast<uint64_t>(i);
  }
}

/// Sorts words by their keys of `bytes` bytes, from the least byte on (radix sort), which keeps the order of
/// equal ones.
template <class Word>
void sort_by_bytes(std::vector<Word>& words, int bytes) {
  constexpr int place_bits = 4 * sizeof(Word);
  std::array<std::array<int64_t, 256>, 8> counts{};
  for (const Word word : words)
    for (int byte = 0; byte < bytes; ++byte)
      ++counts[static_cast<std::size_t>(byte)][static_cast<uint8_t>(word >> (place_bits + 8 * byte))];
  std::vector<Word> spare(words.size());
  for (int byte = 0; byte < bytes; ++byte) {
    auto& next = counts[static_cast<std::size_t>(byte)];
    const int shift = place_bits + 8 * byte;
    if (next[static_cast<uint8_t>(words[0] >> shift)] == static_cast<int64_t>(words.size())) continue;
    std::exclusive_scan(next.begin(), next.end(), next.begin(), int64_t{0});
    for (const Word word : words)
      spare[static_cast<std::size_t>(next[static_cast<uint8_t>(word >> shift)]++)] = word;
    words.swap(spare);
  }
}

/// Whether n words are so few that counting would cost more than comparing.
constexpr bool is_short_line(int64_t n, int bytes) { return n < 64 * bytes; }

/// Puts the first k words in order.
template <class Word>
void sort_first(std::vector<Word>& words, int64_t k, int bytes) {
  const auto n = static_cast<int64_t>(words.size());
  if (!is_short_line(n, bytes))
    sort_by_bytes(words, bytes);
  else if (k < n / 4)
    std::partial_sort(words.begin(), words.begin() + k, words.end());
  else
    std::sort(words.begin(), words.end());
}

/// The least k of words that are shown to it.
template <class Word>
class LeastWords {
 public:
  explicit LeastWords(int64_t k) : k_(k) {}
  void add(const Word* words, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if (words[i] >= bound_) continue;
      kept_.push_back(words[i]);
      if (std::ssize(kept_) >= 2 * k_ + spare) prune();
    }
  }
  std::vector<Word> take() {
    prune();
    return std::move(kept_);
  }

 private:
  static constexpr int64_t spare = 32;

  void prune() {
    if (std::ssize(kept_) <= k_) return;
    std::nth_element(kept_.begin(), kept_.begin() + (k_ - 1), kept_.end());
    kept_.resize(static_cast<std::size_t>(k_));
    bound_ = kept_.back();
  }

  int64_t k_;
  Word bound_ = static_cast<Word>(~Word(0));
  std::vector<Word> kept_;
};

/// Elements of a line that is sorted by counting, for each, how many belong before it: without a branch.
constexpr int64_t counted_line = 32;
/// Such lines at a time: as many words side by side as make a large vector.
constexpr int64_t lines_at_once = 8;
using Words = std::array<uint64_t, lines_at_once>;

/// ranks[i][l] = how many of line l's n words are smaller than words[i][l].
inline void count_smaller(const Words* words, int64_t n, Words* ranks) {
  for (int64_t i = 0; i < n; ++i) {
    const Words own = words[i];
    Words smaller{};
    for (int64_t j = 0; j < n; ++j)
      for (std::size_t l = 0; l < lines_at_once; ++l) smaller[l] += words[j][l] < own[l] ? 1 : 0;
    ranks[i] = smaller;
  }
}

/// A line to be sorted, and where its first k elements and their places go.
template <class T>
struct Line {
  const T* from;
  T* to;
  int64_t* places;
  int64_t from_step, to_step, place_step;
  int64_t n, k;
  bool descending;

  /// The first k words in order, few of many: without an array of all.
  template <class Word>
  std::vector<Word> first_few(KeyOf<T> least) const {
    constexpr int64_t part = 1 << 20, block = 1024;
    const int64_t parts = ceil_div(n, part);
    std::vector<std::vector<Word>> found(static_cast<std::size_t>(parts));
    parallel_chunks(parts, [&](int64_t i) {
      LeastWords<Word> some(k);
      Word words[block];
      const int64_t end = std::min(n, (i + 1) * part);
      for (int64_t first = i * part; first < end; first += block) {
        const int64_t count = std::min(block, end - first);
        make_words(words, from, from_step, first, first + count, least, descending);
        some.add(words, count);
      }
      found[static_cast<std::size_t>(i)] = some.take();
    });
    LeastWords<Word> all(k);
    if (parts > 1)
      for (const std::vector<Word>& some : found) all.add(some.data(), std::ssize(some));
    std::vector<Word> words = parts > 1 ? all.take() : std::move(found[0]);
    std::sort(words.begin(), words.end());
    return words;
  }

  template <class Word>
  std::vector<Word> all_words(KeyOf<T> least, int bytes) const {
    std::vector<Word> words(static_cast<std::size_t>(n));
    parallel_for(0, n, 65536, [&](int64_t first, int64_t last) {
      make_words(words.data() + first, from, from_step, first, last, least, descending);
    });
    sort_first(words, k, bytes);
    return words;
  }

  template <class Word>
  void sort(KeyOf<T> least, int bytes) const {
    const bool few = k < n / 16 && !is_short_line(n, bytes);
    const std::vector<Word> words = few ? first_few<Word>(least) : all_words<Word>(least, bytes);
    constexpr Word mask = (Word{1} << (4 * sizeof(Word))) - 1;
    parallel_for(0, k, 16384, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const auto place = static_cast<int64_t>(words[static_cast<std::size_t>(i)] & mask);
        to[i * to_step] = from[place * from_step];
        places[i * place_step] = place;
      }
    });
  }

  void sort() const {
    if constexpr (std::is_same_v<T, int64_t>) {
      // Integers are seldom far apart, and small words are sorted twice as fast.
      uint64_t least = key_of(from[0]);
      uint64_t most = least;
      for (int64_t i = 1; i < n; ++i) {
        least = std::min(least, key_of(from[i * from_step]));
        most = std::max(most, key_of(from[i * from_step]));
      }
      if ((most - least) >> 32 == 0 && n >> 32 == 0) return sort<uint64_t>(least, 4);
    }
    sort<WordOf<T>>(0, sizeof(KeyOf<T>));
  }
};

/// Sorts `count` short lines like the first one, of which each is `apart` steps from the one before.
template <class T>
void sort_short_lines(Line<T> line, const std::array<int64_t, 3>& apart, int64_t count) {
  alignas(64) Words words[counted_line]{}, ranks[counted_line];
  for (int64_t l = 0; l < count; ++l)
    for (int64_t i = 0; i < line.n; ++i)
      make_words(&words[i][static_cast<std::size_t>(l)], line.from + l * apart[0], line.from_step, i, i + 1,
                 KeyOf<T>(0), line.descending);
  count_smaller(words, line.n, ranks);
  for (std::size_t l = 0; l < static_cast<std::size_t>(count); ++l) {
    std::array<int64_t, counted_line> order;
    for (int64_t i = 0; i < line.n; ++i) order[ranks[i][l]] = i;
    for (int64_t r = 0; r < line.k; ++r) {
      const int64_t place = order[static_cast<std::size_t>(r)];
      line.to[r * line.to_step] = line.from[place * line.from_step];
      line.places[r * line.place_step] = place;
    }
    line.from += apart[0];
    line.to += apart[1];
    line.places += apart[2];
  }
}

/// Sorts lines of x into `values` and `indices`, the first k elements of each.
void sort_lines(const char* op, const Tensor& x, std::size_t dim, bool descending, const Tensor& values,
                const Tensor& indices) {
  if constexpr (with_cuda)
    if (x.device().is_cuda()) return sort_lines_cuda(op, x, dim, descending, values, indices);
  const int64_t n = x.shape()[dim];
  const int64_t k = values.shape()[dim];
  if (k == 0) return;
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    constexpr auto word = static_cast<int64_t>(sizeof(WordOf<T>));
    if (x.numel() > 0) check_host_memory(op, checked_multiply(n, 2 * word, op));
    check<ShapeError>(word > 8 || n >> 32 == 0, "{}: at most 2^32 elements of {} in a line, got {}", op,
                      x.dtype(), n);
    const std::array strides = {x.strides(), values.strides(), indices.strides()};
    const std::size_t side = side_of(x.shape().size(), dim);
    const std::array apart = {strides[0][side], strides[1][side], strides[2][side]};
    const Line<T> first{x.data<T>(),
                        values.data<T>(),
                        indices.data<int64_t>(),
                        strides[0][dim],
                        strides[1][dim],
                        strides[2][dim],
                        n,
                        k,
                        descending};
    for_each_lines<3>(x.shape(), dim, strides, [&](const auto& start, int64_t count) {
      const bool is_short = word == 8 && n <= counted_line;
      const int64_t at_once = is_short ? lines_at_once : 1;
      for (int64_t done = 0; done < count; done += at_once) {
        Line<T> line = first;
        line.from += start[0] + done * apart[0];
        line.to += start[1] + done * apart[1];
        line.places += start[2] + done * apart[2];
        is_short ? sort_short_lines(line, apart, std::min(at_once, count - done)) : line.sort();
      }
    });
  });
}

}  // namespace

ValuesIndices sort_first(const char* op, const Tensor& x, int64_t dim, bool descending, int64_t k) {
  Shape shape = x.shape();
  const auto along = static_cast<std::size_t>(dim);
  const bool is_all = std::exchange(shape[along], k) == k;
  const std::array inputs = {x};
  const TensorOptions like{.dtype = x.dtype(), .device = x.device()};
  const ValuesIndices result = {
      is_all ? empty_like(x) : empty(shape, like),
      is_all ? empty_as(inputs, shape, int64) : empty(shape, {.dtype = int64, .device = x.device()})};
  sort_lines(op, x, along, descending, result.values, result.indices);
  return result;
}

}  // namespace pleat::ops
