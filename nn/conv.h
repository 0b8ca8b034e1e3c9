#pragma once

#include <optional>

#include "pleat/core/base/required.h"
#include "pleat/nn/layer.h"
#include "pleat/ops/conv/options.h"

namespace pleat::nn {

struct ConvModuleOptions {
  Required<int64_t> in_channels;
  Required<int64_t> out_channels;
  Required<PerDim> kernel_size;
  PerDim stride = 1;
  Padding padding = 0;
  PerDim dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  /// The values of the padding: "zeros", "reflect", "replicate" or "circular"; see PadMode in
  /// ops/shape/pad.h.
  std::string padding_mode = "zeros";
  std::string implementation = {};          ///< of all passes; empty: see pleat::ConvOptions
  std::optional<Precision> precision = {};  ///< of all passes; see pleat::ConvOptions
};

/// What Conv1d, Conv2d and Conv3d share.
class ConvModule : public WeightAndBias<Module> {
 public:
  Tensor forward(const Tensor& x) override;
  std::string type_name() const override { return "Conv" + std::to_string(dims_) + "d"; }
  std::string options_text() const override;

  pleat::ConvOptions options;
  std::string padding_mode;

 protected:
  ConvModule(int dims, ConvModuleOptions o);

 private:
  int dims_;
};

/// Convolution of [N, C, spatial...] with `dims` spatial dimensions; formula and errors:
/// ops/conv/conv.h. weight [out, in / groups, kernel...] and bias [out] start uniform on
/// [-b, b], b = 1 / sqrt(in / groups * taps). The weight has the memory format channels-last, which
/// the fast implementations read. Throws ValueError for invalid options. With a padding mode other
/// than zeros the input is padded first, and forward throws what pad does when it is too small.
template <int dims>
struct Conv : ConvModule {
  explicit Conv(ConvModuleOptions o) : ConvModule(dims, std::move(o)) {}
};

using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

struct ConvTransposeModuleOptions {
  Required<int64_t> in_channels;
  Required<int64_t> out_channels;
  Required<PerDim> kernel_size;
  PerDim stride = 1;
  Padding padding = 0;
  PerDim output_padding = 0;
  PerDim dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::string implementation = {};
  std::optional<Precision> precision = {};
};

/// What ConvTranspose1d, ConvTranspose2d and ConvTranspose3d share.
class ConvTransposeModule : public WeightAndBias<Module> {
 public:
  Tensor forward(const Tensor& x) override;
  std::string type_name() const override { return "ConvTranspose" + std::to_string(dims_) + "d"; }
  std::string options_text() const override;

  pleat::ConvTransposeOptions options;

 protected:
  ConvTransposeModule(int dims, ConvTransposeModuleOptions o);

 private:
  int dims_;
};

/// Transposed convolution; weight [in, out / groups, kernel...], bias [out].
template <int dims>
struct ConvTranspose : ConvTransposeModule {
  explicit ConvTranspose(ConvTransposeModuleOptions o) : ConvTransposeModule(dims, std::move(o)) {}
};

using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

}  // namespace pleat::nn
