#include "pleat/tests/fixture.h"

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using test::Json;

TEST_CASE("every recorded tensor is read with its shape and dtype") {
  int64_t tensors = 0;
  for (const std::string file : {"layers", "losses"}) {
    for (const Json& entry : test::fixture(file).at("cases")) {
      CAPTURE(file, entry.at("name").get<std::string>());
      const auto inputs = test::tensors_from(entry.at("inputs"));
      const auto outputs = test::tensors_from(entry.at("outputs"));
      const auto grads = test::tensors_from(entry.at("grads"));
      CHECK(test::tensor_from(entry.at("grad_output")).shape() == outputs.at("y").shape());
      CHECK_FALSE(grads.empty());
      for (const auto& [name, grad] : grads) {
        CHECK(grad.shape() == inputs.at(name).shape());
        CHECK(grad.dtype() == float64);
      }
      tensors += static_cast<int64_t>(inputs.size() + outputs.size() + grads.size());
    }
  }
  CHECK(tensors > 800);
}

TEST_CASE("recorded numbers keep every digit") {
  const Json& entry = test::fixture_case("init", "new_Linear");
  // 1 / sqrt(7), whose shortest decimal form has 16 digits.
  CHECK(entry.at("outputs").at("bias").at("high").get<double>() == 0.3779644730092272);

  const Tensor index =
      test::tensor_from({{"shape", {2, 1}}, {"dtype", "int64"}, {"data", {9007199254740993, -1}}});
  CHECK(index.dtype() == int64);
  CHECK(index.shape() == Shape{2, 1});
  CHECK(index.to_vector<int64_t>() == std::vector<int64_t>{9007199254740993, -1});
}

TEST_CASE("cases are found by op and by name") {
  CHECK(test::fixture_cases("optimizers", "SGD").size() == 9);
  CHECK(test::fixture_case("schedules", "step_7").at("options").at("step_size") == 7);
}

TEST_CASE("what a fixture does not hold is an error") {
  CHECK_THROWS_AS(test::fixture("missing"), FileError);
  CHECK_THROWS_WITH(test::fixture_cases("losses", "hinge"),
                    "fixture: losses.json must have a case of hinge, it has none");
  CHECK_THROWS_WITH(test::fixture_case("losses", "hinge_mean"),
                    "fixture: losses.json must have the case hinge_mean, it has not");
  CHECK_THROWS_AS(test::tensor_from({{"shape", {1}}, {"dtype", "float32"}, {"data", {1.0}}}), DTypeError);
  CHECK_THROWS_AS(test::tensor_from({{"shape", {3}}, {"dtype", "float64"}, {"data", {1.0}}}), ShapeError);
}
