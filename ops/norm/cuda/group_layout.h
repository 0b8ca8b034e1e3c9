// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/tensor/convert.h"

/// How the elements of a dense tensor belong to groups, for reduce_groups.h. For files with kernels only.

namespace pleat::ops {

/// How the vectors (1 or more adjacent elements) of a dense tensor belong to groups, and how teams of threads
/// share them. A track is what one team reads: all vectors of one group, or, where neighbours belong to
/// different groups (`across`), the vectors at one place of every row, each lane of which is a group's.
struct GroupLayout {
  bool across = false;
  int64_t columns = 1;  ///< groups of a track
  int64_t tracks = 0;
  int64_t count = 0;   ///< vectors of a track
  FastDivider beside;  ///< tracks that begin side by side
  int64_t beside_step = 0;
  FastDivider run;       ///< vectors of a track that lie one behind the other
  int64_t run_step = 0;  ///< 0: all do

  Teams teams;
  int64_t part = 0;     ///< vectors of a track that a block reads
  int64_t parts = 0;    ///< of a track
  FastDivider abreast;  ///< blocks for the first part of all tracks

  /// Groups of `runs` runs of `length` elements; run j of group g begins at (j * groups + g) * length.
  static GroupLayout along(int64_t groups, int64_t runs, int64_t length, std::size_t width) {
    const int64_t vectors = length / static_cast<int64_t>(width);
    GroupLayout layout;
    layout.tracks = groups;
    layout.count = runs * vectors;
    layout.beside = FastDivider(1);
    layout.beside_step = vectors;
    layout.run = FastDivider(vectors);
    layout.run_step = runs > 1 ? groups * vectors : 0;
    return layout;
  }
  /// Groups of single elements `columns` apart, `rows` of them; `images` times `columns` groups.
  static GroupLayout down(int64_t images, int64_t rows, int64_t columns, std::size_t width) {
    const int64_t vectors = columns / static_cast<int64_t>(width);
    GroupLayout layout;
    layout.columns = static_cast<int64_t>(width);
    layout.across = true;
    layout.tracks = images * vectors;
    layout.count = rows;
    layout.beside = FastDivider(vectors);
    layout.beside_step = rows * vectors;
    layout.run = FastDivider(1);
    layout.run_step = vectors;
    return layout;
  }

  /// Shares the work out: parts of at least `least` vectors a thread, and about `blocks` blocks.
  GroupLayout& share(int64_t least, int64_t blocks) {
    teams = choose_teams(count, across ? beside.divisor() : 1);
    while (teams.count() * columns > block_threads) ++teams.log_lanes;
    const int64_t side_by_side = (tracks + teams.count() - 1) / teams.count();
    abreast = FastDivider(side_by_side);
    const int64_t most = std::max<int64_t>(1, count / (teams.lanes() * least));
    const int64_t wanted = std::clamp<int64_t>(ceil_div(blocks, side_by_side), 1, most);
    // Whole rounds of a team, so that parts begin where memory is fetched.
    const int64_t rounds = ceil_div(ceil_div(count, wanted), teams.lanes());
    part = std::max<int64_t>(1, rounds * teams.lanes());
    parts = ceil_div(count, part);
    return *this;
  }
  int64_t blocks() const { return abreast.divisor() * parts; }

  /// Calls `f(track, number of the part, first, last, step)` with the vectors of a track that are a thread's.
  template <class F>
  __device__ void for_own(int64_t b, const Block& block, const F& f) const {
    int64_t rest = b;
    const int64_t number = abreast.divide(rest);
    const int64_t track = rest * teams.count() + teams.team_of(block.thread());
    if (track >= tracks) return;
    const int64_t first = number * part;
    f(track, number, first + teams.lane_of(block.thread()), first + part < count ? first + part : count,
      static_cast<int64_t>(teams.lanes()));
  }
  PLEAT_HOST_DEVICE int64_t begin(int64_t track) const {
    int64_t rest = track;
    return beside.divide(rest) * beside_step + rest;
  }
  /// Where vector v of the track that begins at `begin` lies.
  template <bool is_across>
  PLEAT_HOST_DEVICE int64_t at(int64_t begin, int64_t v) const {
    if constexpr (is_across) return begin + v * run_step;
    if (run_step == 0) return begin + v;
    int64_t rest = v;
    return begin + run.divide(rest) * run_step + rest;
  }
  /// The groups of a block's tracks: the first, and the one behind the last.
  PLEAT_HOST_DEVICE int64_t first_group(int64_t b) const {
    abreast.divide(b);
    return b * teams.count() * columns;
  }
  PLEAT_HOST_DEVICE int64_t last_group(int64_t b) const {
    const int64_t last = first_group(b) + teams.count() * columns;
    return last < tracks * columns ? last : tracks * columns;
  }
};

/// Vectors that a thread waits for together.
inline constexpr int vectors_at_once = 4;

/// How many elements of type S are moved at once where `length` is a multiple of that and the addresses are:
/// as many as 16 bytes hold, but no more than 4 columns.
template <class S, bool across>
constexpr std::size_t wide = across ? std::min<std::size_t>(16 / sizeof(S), 4) : 16 / sizeof(S);

/// Calls `f(std::integral_constant<std::size_t, width>{}, std::bool_constant<across>{})`.
template <class S, bool across, class F>
void by_width(int64_t length, std::initializer_list<const S*> data, const F& f) {
  constexpr std::size_t width = wide<S, across>;
  bool can = length % static_cast<int64_t>(width) == 0;
  for (const S* pointer : data)
    can = can && reinterpret_cast<std::uintptr_t>(pointer) % (width * sizeof(S)) == 0;
  if (can)
    f(std::integral_constant<std::size_t, width>{}, std::bool_constant<across>{});
  else
    f(std::integral_constant<std::size_t, 1>{}, std::bool_constant<across>{});
}

/// Calls `f(Type<T>{}, Type<S>{})`: T is computed in, S is stored.
template <class F>
void by_stored_type(DType dtype, const F& f) {
  if (dtype == float64) return f(Type<double>{}, Type<double>{});
  if (dtype == float16) return f(Type<float>{}, Type<Half>{});
  if (dtype == bfloat16) return f(Type<float>{}, Type<BFloat16>{});
  f(Type<float>{}, Type<float>{});
}

}  // namespace pleat::ops
