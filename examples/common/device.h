#pragma once

#include <optional>
#include <string>

#include <pleat/pleat.h>

/// The device of a program.

/// "auto": the first GPU where there is one, else the CPU. "cpu", "cuda" and "cuda:1" name one.
/// Throws UsageError for other names and, with the reason, when there is no such GPU. `number`: of this
/// process among those of its machine, which take one GPU after the other where none is named.
pleat::Device choose_device(const std::string& name, int number = 0);

/// Throws UsageError unless the device has a convolution implementation of that name ("" stands for
/// any).
void check_implementation(const std::string& name, pleat::Device device);

/// The half type of mixed precision: "float16", "bfloat16"; none for "off".
std::optional<pleat::DType> amp_dtype(const std::string& name);

/// "cpu, 8 threads" or "cuda:0, NVIDIA H200".
std::string describe(pleat::Device device);

/// The samples on the device if they take at most half of its free memory, else unchanged; a loader
/// with that device then copies each batch.
pleat::data::TensorDataset near_device(const pleat::data::TensorDataset& samples, pleat::Device device);
