#include "pleat/bench/conv_shape.h"

#include <filesystem>

#include "pleat/bench/options.h"
#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/ops/conv_cases.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::bench;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

std::string canonical(const std::string& shape) { return parse_conv_shape(shape).describe(); }

const std::string header =
    "name,dims,n,g,ic,oc,id,ih,iw,kd,kh,kw,sd,sh,sw,pd,ph,pw,dd,dh,dw,od,oh,ow,pd_r,ph_r,pw_r,sym,mult,"
    "file\n";

std::vector<NamedProblem> read(const std::string& text) {
  const pleat_test::TemporaryDirectory folder;
  pleat_test::write_bytes(folder / "shapes.csv", text);
  return read_conv_shapes(folder / "shapes.csv");
}

}  // namespace

TEST_CASE("shapes of 1, 2 and 3 dimensions are read", "[bench]") {
  const ops::ConvProblem two = parse_conv_shape("n128 c64 k32 hw32 r3 s2 p1");
  CHECK(two.spatial_dims == 2);
  CHECK(two.input_shape() == Shape{128, 64, 32, 32});
  CHECK(two.weight_shape() == Shape{32, 64, 3, 3});
  CHECK(two.output_shape() == Shape{128, 32, 16, 16});
  const ops::ConvProblem one = parse_conv_shape("c32 k16 w4096 r2 dil4");
  CHECK(one.spatial_dims == 1);
  CHECK(one.input_shape() == Shape{1, 32, 4096});
  CHECK(one.output_shape() == Shape{1, 16, 4092});
  const ops::ConvProblem three = parse_conv_shape("n2 c16 k32 g4 d8 h32 w16 r1x3x5 p0x1x2 s1x2x1");
  CHECK(three.input_shape() == Shape{2, 16, 8, 32, 16});
  CHECK(three.weight_shape() == Shape{32, 4, 1, 3, 5});
  CHECK(three.output_shape() == Shape{2, 32, 8, 16, 16});
  CHECK(parse_conv_shape("c1 k1 hw4 r2 pl0x1 ph1x0").output_shape() == Shape{1, 1, 4, 4});
}

TEST_CASE("a shape has one canonical form, whatever it was written like", "[bench]") {
  CHECK(canonical("r3 p1 hw32 k64 c64 n128") == "n128 c64 k64 hw32 r3 s1 p1");
  CHECK(canonical("n128c64k64h32w32r3x3s1x1p1") == "n128 c64 k64 hw32 r3 s1 p1");
  CHECK(canonical(" n2  c8 k8 dhw4x6x8 r3 p1 dil1 g1 ") == "n2 c8 k8 d4h6w8 r3 s1 p1");
  CHECK(canonical("c8 k8 hw9 r3 dil2 g8 pl0 ph1") == "n1 c8 k8 hw9 r3 s1 pl0 ph1 dil2 g8");
}

TEST_CASE("the canonical form of any problem can be pasted back", "[bench]") {
  for (const test::ConvCase& c : test::conv_cases()) {
    const int dims = static_cast<int>(c.input.size()) - 2;
    const Tensor x = empty(c.input);
    const Tensor w = empty(c.weight);
    const ops::ConvProblem problem = ops::make_conv_problem("conv", dims, ops::ConvOperand("input", x),
                                                            ops::ConvOperand("weight", w), c.options);
    const std::string text = problem.describe();
    CAPTURE(text);
    const ops::ConvProblem again = parse_conv_shape(text);
    CHECK(again.describe() == text);
    CHECK(again.input_shape() == problem.input_shape());
    CHECK(again.weight_shape() == problem.weight_shape());
    CHECK(again.output_shape() == problem.output_shape());
    CHECK(again.stride == problem.stride);
    CHECK(again.padding_low == problem.padding_low);
    CHECK(again.padding_high == problem.padding_high);
    CHECK(again.dilation == problem.dilation);
    CHECK(again.groups == problem.groups);
  }
}

TEST_CASE("a shape that is none says what is wrong and shows one that is", "[bench]") {
  const auto [shape, message] = GENERATE(table<std::string, std::string>({
      {"", "w is missing"},
      {"n1 c3 hw8 r3", "k is missing"},
      {"n1 k3 hw8 r3", "c is missing"},
      {"n1 c3 k3 hw8", "r is missing"},
      {"n1 c3 k3 h8 r3", "w is missing"},
      {"n1 c3 k3 d8 w8 r3", "h is missing"},
      {"n1 c3 k3 hw8 w8 r3", "has hw and w"},
      {"n1 c3 k3 hw8 dhw8 r3", "has dhw and hw"},
      {"n1 c3 k3 hw8 r3 r3", "r is there twice"},
      {"n1 c3 k3 hw8 r3x3x3", "r takes one number, or 2 joined by x, got 3"},
      {"n1x2 c3 k3 hw8 r3", "n takes one number, got 2"},
      {"n1 c3 k3 hw8 r3 q2", "got \"q2\""},
      {"n1 c3 k3 hw8 r3 7", "got \"7\""},
      {"n1 c3 k3 hw8 r", "r needs a number that is not negative, got \"r\""},
      {"n1 c3 k3 hw8 r-3", "r needs a number that is not negative, got \"r-3\""},
      {"n1 c3 k99999999999999999999 hw8 r3", "k needs a number"},
      {"n1 c3 k3 hw8 r3 p1 pl1", "has p, and pl or ph"},
      {"n1 c3 k3 hw8 r3 g0", "g must be at least 1, got 0"},
  }));
  CAPTURE(shape);
  CHECK_THROWS_AS(parse_conv_shape(shape), UsageError);
  CHECK_THROWS_WITH(parse_conv_shape(shape), StartsWith("shape \"" + shape + "\": ") && Contains(message) &&
                                                 Contains("n128 c64 k64 hw32 r3 s1 p1"));
}

TEST_CASE("sizes that do not fit are refused in the convolution's words, in one line", "[bench]") {
  const auto [shape, message] = GENERATE(table<std::string, std::string>({
      {"c3 k4 hw2 r5", "conv2d: a kernel of 5 with dilation 1 reaches over 5 elements"},
      {"c3 k4 hw8 r3 g2", "conv2d: "},
      {"c3 k4 hw8 r3 s0", "conv2d: "},
      {"c3 k4 hw8 r0", "conv2d: every size of the weight must be at least 1"},
      {"n4000000000 c4000000000 k4 hw8 r3", "does not fit 64 bits"},
  }));
  CAPTURE(shape);
  CHECK_THROWS_AS(parse_conv_shape(shape), UsageError);
  CHECK_THROWS_WITH(parse_conv_shape(shape),
                    StartsWith("shape \"" + shape + "\": ") && Contains(message) && !Contains("\n"));
}

TEST_CASE("shapes are read from a file of layers", "[bench]") {
  const auto problems =
      read(header +
           "wavenet:conv1d_1,1,2,1,32,16,1,1,84,1,1,2,1,1,1,0,0,0,1,1,1,1,1,83,0,0,0,1,1,f\r\n"
           "\n"
           "\"unet, 3d\",3,1,1,4,8,8,16,16,1,3,3,1,2,2,0,1,1,1,1,1,8,8,8,0,1,1,1,1,f\n"
           "same,2,1,4,8,8,1,9,9,1,2,2,1,1,1,0,0,0,1,1,1,1,9,9,0,1,1,0,1,f\n"
           // A stride that leaves columns over: the high side says how many, and the padding is that of the
           // low side.
           "pointwise,2,1,1,4,8,1,8,8,1,1,1,1,2,2,0,0,0,1,1,1,1,4,4,0,-1,-1,1,1,f\n"
           "stem,2,1,1,3,8,1,8,8,1,7,7,1,2,2,0,3,3,1,1,1,1,4,4,0,2,2,1,1,f\n");
  REQUIRE(problems.size() == 5);
  CHECK(problems[0].name == "wavenet:conv1d_1");
  CHECK(problems[0].problem.describe() == "n2 c32 k16 w84 r2 s1 p0");
  CHECK(problems[1].name == "unet, 3d");
  CHECK(problems[1].problem.describe() == "n1 c4 k8 d8h16w16 r1x3x3 s1x2x2 p0x1x1");
  CHECK(problems[2].problem.describe() == "n1 c8 k8 hw9 r2 s1 pl0 ph1 g4");
  CHECK(problems[3].problem.describe() == "n1 c4 k8 hw8 r1 s2 p0");
  CHECK(problems[4].problem.describe() == "n1 c3 k8 hw8 r7 s2 p3");
}

TEST_CASE("a file of layers that is none is refused with the line", "[bench]") {
  const std::string good = "a,2,1,1,4,8,1,16,16,1,3,3,1,1,1,0,1,1,1,1,1,1,16,16,0,1,1,1,1,f\n";
  CHECK(read(header + good).size() == 1);
  const auto [text, message] = GENERATE_COPY(table<std::string, std::string>({
      {"", "': is empty"},
      {header, "': has no rows"},
      {"n,ic\n1,2\n", ":2: the column"},
      {header + good + "b,2,1\n", ":3: needs 30 cells, as the first line has, got 3"},
      {header + "a,2,x,1,4,8,1,16,16,1,3,3,1,1,1,0,1,1,1,1,1,1,16,16,0,1,1,1,1,f\n",
       ":2: n must be a number that is not negative, got \"x\""},
      {header + "a,4,1,1,4,8,1,16,16,1,3,3,1,1,1,0,1,1,1,1,1,1,16,16,0,1,1,1,1,f\n",
       ":2: dims must be 1, 2 or 3, got 4"},
      {header + "a,2,1,0,4,8,1,16,16,1,3,3,1,1,1,0,1,1,1,1,1,1,16,16,0,1,1,1,1,f\n",
       ":2: shape \"n1 c4 k8 g0 hw16x16 r3x3 s1x1 dil1x1 pl1x1 ph1x1\": g must be at least 1"},
      {header + "a,2,1,1,4,8,1,16,16,1,3,3,1,1,1,0,1,1,1,1,1,1,17,16,0,1,1,1,1,f\n",
       ":2: the output of n1 c4 k8 hw16 r3 s1 p1 has sizes [16, 16], the row says [17, 16]"},
      {header + "a,2,1,1,4,8,1,2,2,1,5,5,1,1,1,0,0,0,1,1,1,1,1,1,0,0,0,1,1,f\n",
       ":2: shape \"n1 c4 k8 g1 hw2x2 r5x5 s1x1 dil1x1 pl0x0 ph0x0\": conv2d: a kernel of 5"},
  }));
  CAPTURE(text);
  CHECK_THROWS_AS(read(text), FileError);
  CHECK_THROWS_WITH(read(text), Contains("shapes.csv" + message));
  CHECK_THROWS_WITH(read_conv_shapes("no_such_file.csv"),
                    "--shapes: 'no_such_file.csv': cannot open: No such file or directory");
}
