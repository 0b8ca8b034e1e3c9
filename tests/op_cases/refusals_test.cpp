// Calls that are refused say why, and leave their tensors as they were.

#include "pleat/core/base/error.h"
#include "pleat/tests/op_cases/all_cases.h"

using namespace pleat;
using namespace pleat::test;
using Catch::Matchers::Contains;

namespace {

void check_refusals(const OpCase& c) {
  for (const Refusal& refusal : c.refused) {
    CAPTURE(refusal.words);
    Tensors inputs;
    std::vector<Numbers> before;
    std::vector<uint64_t> versions;
    for (const Tensor& x : refusal.inputs) {
      inputs.push_back(ops::to_device(ops::copy(x), default_device()));
      before.push_back(x.to_vector<double>());
      versions.push_back(inputs.back().version());
    }
    CHECK_THROWS_WITH(refusal.call(inputs), Contains(refusal.words));
    CHECK_THROWS_AS(refusal.call(inputs), Error);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      CHECK(inputs[i].to_vector<double>() == before[i]);
      CHECK(inputs[i].version() == versions[i]);
    }
  }
}

}  // namespace

PLEAT_TEST_FAMILIES("refusals", "[op_cases]", check_refusals)
