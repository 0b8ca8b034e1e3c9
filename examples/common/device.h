#pragma once

#include <string>

#include <pleat/pleat.h>

/// Where a program computes.

/// "auto": the first GPU where there is one, else the CPU. "cpu", "cuda" and "cuda:1" are taken at their
/// word: throws DeviceError, with the reason, when there is no such GPU, and ValueError for other names.
pleat::Device choose_device(const std::string& name);

/// "cpu, 8 threads" or "cuda:0, NVIDIA H200".
std::string describe(pleat::Device device);

/// A batch's tensor on the device. The copy to a GPU goes on while the host does something else.
pleat::Tensor on_device(const pleat::Tensor& x, pleat::Device device);
