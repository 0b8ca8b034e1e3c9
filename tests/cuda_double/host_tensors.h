#pragma once

#include <string>

/// Memory of tensors on the CPU: what the process allocates by std::aligned_alloc. It is closed while a
/// kernel runs, so that a kernel that was given such an address is noticed where it uses it.

namespace cuda_double {

/// Until it is opened again the calling thread must not touch tensors on the CPU; other threads that do wait.
/// The caller holds the machine's lock.
void close_host_tensors();
void open_host_tensors();

bool in_host_tensors(const void* address);
/// For the handler of wrong accesses: false in the thread that closed the memory; in others true, once it is
/// open again.
bool waited_for_host_tensors();

}  // namespace cuda_double
