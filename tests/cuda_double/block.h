#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <vector_types.h>

/// A block of threads, each on a stack of its own. They take turns in an order drawn from the seed, and
/// change where they meet: at __syncthreads, at a shuffle, at a read or write of shared memory. What a GPU
/// would not notice ends the process: a barrier that some threads never reach, shared memory that is read
/// before it is written, or read and written by two threads without a barrier between them.

namespace cuda_double {

struct ThreadPlace {
  uint3 thread{}, block{};
  dim3 threads, blocks;
};

/// Of the thread that runs.
ThreadPlace& place();

/// Runs every block of a grid, one after the other in random order; `what` is the kernel's name.
void run_grid(const std::string& what, dim3 blocks, dim3 threads, const std::function<void()>& kernel);

/// __syncthreads().
void meet_block(const void* site);
/// Gives `word` to the warp, and returns that of `lane` of it once all threads of `mask` are there.
unsigned exchange_in_warp(unsigned mask, unsigned word, int lane, const void* site);

/// To be called before shared memory is read or written: `first` is that of the array, `size` the element's.
void watch_shared(const void* first, std::size_t index, std::size_t size, std::size_t array_bytes,
                  bool writes);

}  // namespace cuda_double
