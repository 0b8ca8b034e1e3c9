#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// A stream of random numbers. Element i of the n-th draw depends on (seed, n, i) alone, by the counter-based
/// generator Philox 4x32-10 (Salmon et al., SC'11): the same for any number of threads and any device.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0) : state_{seed, 0} {}
  ~Generator();
  Generator(const Generator&) = default;
  Generator& operator=(const Generator&) = default;
  void set_seed(uint64_t seed) { change() = {seed, 0}; }
  uint64_t seed() const { return state_[0]; }
  /// How many draws were taken: with the seed, the whole state.
  uint64_t draws() const { return state_[1]; }
  void set_draws(uint64_t draws) { change()[1] = draws; }
  /// The number of the next draw; takes it.
  uint64_t next_draw() { return change()[1]++; }

 private:
  /// The state, of which a running checkpoint() is told.
  std::array<uint64_t, 2>& change();

  std::array<uint64_t, 2> state_;
};

/// The generator of this thread that functions use when none is given. In a thread that has not called
/// manual_seed it begins with the first use, by the seed of the process's latest manual_seed (0 before any)
/// and the number of the thread: 0 is the one that seeded, or without any the first to draw; the others are
/// numbered as they first draw, so that no two draw the same. Threads whose order is left to chance call
/// manual_seed themselves, each with a number of its own, to repeat theirs.
Generator& default_generator();
/// Makes the default generators of this process give other numbers than those of a process with another
/// stream, for the same seeds and draws. 0 at the start. Processes that train together have one each
/// (dist::init sets it), so that they do not drop the same elements. Generators of one's own give the same
/// numbers in all of them.
void set_random_stream(uint64_t stream);
/// Restarts this thread's.
void manual_seed(uint64_t seed);
/// While it exists, this thread's default generator is another, which begins as `generator`.
class UseGenerator {
 public:
  explicit UseGenerator(const Generator& generator);
  ~UseGenerator();
  UseGenerator(const UseGenerator&) = delete;
  UseGenerator& operator=(const UseGenerator&) = delete;

 private:
  std::optional<Generator> before_;
};

// What a draw gives does not depend on the device, to the bit.

/// Uniform on [0, 1): in half types the number at or below what float32 would have.
Tensor rand(Sizes shape, TensorOptions options = {}, Generator& generator = default_generator());
/// Standard normal (Box-Muller).
Tensor randn(Sizes shape, TensorOptions options = {}, Generator& generator = default_generator());
template <TensorOption T>
Tensor rand(Sizes shape, T option, Generator& generator = default_generator()) {
  return rand(std::move(shape), tensor_options(option), generator);
}
template <TensorOption T>
Tensor randn(Sizes shape, T option, Generator& generator = default_generator()) {
  return randn(std::move(shape), tensor_options(option), generator);
}
/// The same with the shape, dtype and device of another tensor, and its order of dimensions in memory. Throws
/// DTypeError unless it is floating.
Tensor rand_like(const Tensor& like, Generator& generator = default_generator());
Tensor randn_like(const Tensor& like, Generator& generator = default_generator());
/// Integers in [low, high): int64. Throws ValueError when the range is empty.
Tensor randint(Integer low, Integer high, Sizes shape, Generator& generator = default_generator());
Tensor randint(Integer low, Integer high, Sizes shape, Device device,
               Generator& generator = default_generator());
/// The numbers 0 ... n-1 in random order: int64. They are shuffled on the CPU, wherever the result is.
Tensor randperm(Integer n, Generator& generator = default_generator());
Tensor randperm(Integer n, Device device, Generator& generator = default_generator());
/// True with probability `p`, to within 2^-32: bool. Throws ValueError unless 0 <= p <= 1.
Tensor bernoulli(Real p, Sizes shape, Device device = default_device(),
                 Generator& generator = default_generator());

/// In place. Elements are numbered in row-major order of the shape, whatever the strides. Uniform numbers are
/// at least `low` and below `high` in every type; where it has no such number they are the one nearest to
/// `low`. Throw DTypeError unless floating, ValueError when the type cannot hold a bound or their distance.
void fill_uniform_(const Tensor& tensor, Real low, Real high, Generator& generator = default_generator());
void fill_normal_(const Tensor& tensor, Real mean, Real std, Generator& generator = default_generator());

namespace detail {
/// The seed that a draw uses: with the process's stream, where it is a default generator.
uint64_t effective_seed(const Generator& generator);
}  // namespace detail

}  // namespace pleat
