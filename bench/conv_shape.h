#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pleat/ops/conv/problem.h"

/// Convolutions as strings: "n128 c64 k64 hw32 r3 s1 p1". Letters with numbers, in any order, with or without
/// spaces between them; in brackets what is taken when it is not there: n batch (1), c input channels, k
/// output channels, g groups (1); w32, h32 w16 or d8 h32 w16 the sizes of a 1-, 2- or 3-dimensional input,
/// hw32 and dhw8 where all are alike; r kernel, s stride (1), p padding (0), dil dilation (1), each one
/// number, or one a dimension: r1x3x3; pl0x1 ph1x2 padding, where the low and the high side differ.
///
/// The canonical form is what ConvProblem::describe() writes, in error messages, too; it can be pasted back.

namespace pleat::bench {

/// Throws UsageError, with an example, for text that is no shape, and in the convolution's own words for
/// sizes that do not fit each other. On the CPU, float32, contiguous.
ops::ConvProblem parse_conv_shape(const std::string& text);

/// A problem with what its source calls it: "resnet_50:res2a_branch2a".
struct NamedProblem {
  std::string name;  ///< may be empty
  ops::ConvProblem problem;
};

/// The rows of a CSV file with the columns of oneDNN's layer lists: n, g, ic, oc, id, ih, iw, kd, kh, kw, sd,
/// sh, sw, pd, ph, pw, dd, dh, dw (dilation, 1: none) and, where they are there, name, dims, pd_r, ph_r, pw_r
/// (padding at the high side, unless sym is 1: the same as at the low side) and od, oh, ow, which are
/// checked. Other columns are ignored. Throws FileError, naming the line.
std::vector<NamedProblem> read_conv_shapes(const std::filesystem::path& path);

}  // namespace pleat::bench
