#pragma once

#include <optional>
#include <string>

#include <pleat/pleat.h>

/// Where a program computes.

/// "auto": the first GPU where there is one, else the CPU. "cpu", "cuda" and "cuda:1" are taken at their
/// word: throws UsageError for other names and, with the reason, when there is no such GPU.
pleat::Device choose_device(const std::string& name);

/// Throws UsageError unless the device has a convolution implementation of that name ("" is none in
/// particular).
void check_implementation(const std::string& name, pleat::Device device);

/// The half type of mixed precision: "float16", "bfloat16"; none for "off".
std::optional<pleat::DType> amp_dtype(const std::string& name);

/// "cpu, 8 threads" or "cuda:0, NVIDIA H200".
std::string describe(pleat::Device device);

/// The samples on the device if they take at most half of its free memory, else where they are: a loader with
/// that device then copies batch by batch.
pleat::data::TensorDataset near_device(const pleat::data::TensorDataset& samples, pleat::Device device);
