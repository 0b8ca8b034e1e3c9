#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <string>

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pleat/tests/catch.h"

namespace cuda_double {

/// What a process that runs `body` says before it ends; empty when it ends as it should.
inline std::string said_by(const std::function<void()>& body) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    // Catch's handlers would speak first; an allocation puts the double's own back.
    for (const int signal : {SIGABRT, SIGSEGV}) std::signal(signal, SIG_DFL);
    void* memory = nullptr;
    cudaMalloc(&memory, 1);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 512> part{};
  for (ssize_t n = 0; (n = read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : text;
}

}  // namespace cuda_double
