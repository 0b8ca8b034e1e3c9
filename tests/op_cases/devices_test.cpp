// Functions give the same on the CPU and on a GPU.

#include "pleat/tests/device/agree.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/op_cases/all_cases.h"

using namespace pleat;
using namespace pleat::test;

namespace {

void check_devices(const OpCase& c) {
  static const bool lacks_gpus = pleat_test::lacks_gpus();  // which is said once
  if (lacks_gpus) return;
  const AgreeOptions options{.differentiable = c.order > 0, .differences = false, .slack = c.slack};
  agrees(c.inputs, c.call, options);
  for (const DType dtype : types_of(c))
    if (!is_floating(dtype)) agrees_in_value(typed(c.inputs, dtype), c.call);
  if (c.order > 0)
    for (const Tensors& inputs : c.smooth.empty() ? std::vector<Tensors>{c.inputs} : c.smooth)
      differences_agree(inputs, c.call);
  if (c.in_place.call) {
    CAPTURE(c.in_place.name);
    agrees(
        c.inputs,
        [&](Tensors x) {
          x[0] = x[0].clone();
          return c.in_place.call(x);
        },
        options);
  }
  for (const Refusal& refusal : c.refused) agrees_in_value(refusal.inputs, refusal.call);
}

}  // namespace

PLEAT_TEST_FAMILIES("devices", "[device][op_cases]", check_devices)
