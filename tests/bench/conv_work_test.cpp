#include "pleat/bench/conv_work.h"

#include <algorithm>

#include "pleat/bench/conv_shape.h"
#include "pleat/bench/measure.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench;
using ops::ConvPass;

namespace {

/// Products counted one by one.
double counted_flops(const ops::ConvProblem& p) {
  double pairs = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    int64_t found = 0;
    for (int64_t out = 0; out < p.output[d]; ++out)
      for (int64_t tap = 0; tap < p.kernel[d]; ++tap) {
        const int64_t in = out * p.stride[d] - p.padding_low[d] + tap * p.dilation[d];
        found += in >= 0 && in < p.input[d] ? 1 : 0;
      }
    pairs *= static_cast<double>(found);
  }
  return 2 * static_cast<double>(p.batch * p.out_channels * p.group_in()) * pairs;
}

}  // namespace

TEST_CASE("each pass that is timed is the pass that it says", "[bench]") {
  for (const char* shape :
       {"n2 c3 k4 hw6 r3 s2 p1", "c4 k4 w9 r2 g2 pl1 ph0 dil2", "c2 k3 dhw4 r1x3x3 p0x1x1"})
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight}) {
      CAPTURE(shape, name(pass));
      ops::ConvProblem problem = parse_conv_shape(shape);
      problem.bias = pass == ConvPass::forward;
      problem.format = MemoryFormat::channels_last;
      const ConvWork work(problem, pass);
      const Tensor result = work.run("unfold");
      const Shape wanted = pass == ConvPass::forward          ? problem.output_shape()
                           : pass == ConvPass::backward_input ? problem.input_shape()
                                                              : problem.weight_shape();
      CHECK(result.shape() == wanted);
      CHECK(work.exact_implementation() == "reference");
      CHECK(work.exact().dtype() == float64);
      CHECK(relative_error(result, work.exact()) < 1e-5);
      CHECK(work.problem().describe() == problem.describe());
    }
}

TEST_CASE("who takes part is who supports the problem", "[bench]") {
  const ConvWork plain(parse_conv_shape("c4 k4 hw5 r3"), ConvPass::forward);
  const auto names = plain.supporting();
  CHECK(std::find(names.begin(), names.end(), "unfold") != names.end());
  CHECK(std::find(names.begin(), names.end(), "reference") == names.end());
  CHECK(plain.unsupported("direct").empty());
  const ConvWork grouped(parse_conv_shape("c4 k4 hw5 r3 g2"), ConvPass::forward);
  CHECK(grouped.unsupported("direct").empty());
  CHECK_FALSE(grouped.unsupported("winograd").empty());
  CHECK(grouped.unsupported("magic") == "there is no implementation \"magic\" on cpu");
}

TEST_CASE("padding taps are not counted as work", "[bench]") {
  CHECK(parse_conv_shape("c1 k1 w4 r3 p1").valid_flops() ==
        2 * 10);  // 4 outputs of 3 taps, less 2 at the ends
  CHECK(parse_conv_shape("n2 c3 k4 hw5 r3").valid_flops() == 2 * (2 * 4 * 9) * 27);
  CHECK(parse_conv_shape("c1 k1 w1 r9 p9").valid_flops() == 2 * 9);
  for (const char* shape : {"n2 c3 k4 hw7 r3 p1", "c8 k8 hw9 r3 dil2 p2 s2 g8", "c1 k2 w5 r4 pl3 ph0 s3",
                            "c2 k2 dhw5 r3 p3 dil3", "c1 k1 w2 r7 p6 s2", "c1 k1 w3 r2 p5 s4"}) {
    CAPTURE(shape);
    CHECK(parse_conv_shape(shape).valid_flops() == counted_flops(parse_conv_shape(shape)));
  }
}
