#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

/// What tests of the interpreter of PTX share.

namespace cuda_double::ptx {

/// A module with one kernel "k" whose parameters are addresses: in, out.
std::string kernel_text(const std::string& body, const std::string& before = "");

/// Runs kernel "k" of a module on copies of `in`, and returns what is in `out` then.
std::vector<uint64_t> run_kernel(const std::string& text, const std::vector<uint64_t>& in, std::size_t out,
                                 unsigned threads, unsigned blocks = 1, std::size_t dynamic_shared = 0);

/// What a process that does so says before it ends; empty when it ends as it should.
std::string said_by_kernel(const std::string& text, std::size_t in, unsigned threads);

}  // namespace cuda_double::ptx
