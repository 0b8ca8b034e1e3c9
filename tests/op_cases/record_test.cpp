// A profile has each op once, under its name, and its backward pass as NAME_backward.

#include <algorithm>

#include "pleat/autograd/backward.h"
#include "pleat/profile/profiler.h"
#include "pleat/tests/op_cases/all_cases.h"

using namespace pleat;
using namespace pleat::profile;
using pleat::test::Tensors;

namespace {

std::string names_of(const Profile& profile) {
  std::string names = "recorded:";
  for (const Event& event : profile.events) names += " " + event.name;
  return names;
}

void check_events(const test::OpCase& c, const Profile& profile, const Tensors& inputs) {
  const std::string wanted = c.recorded.empty() ? c.name : c.recorded;
  const auto op = std::find_if(profile.events.begin(), profile.events.end(), [&](const Event& event) {
    return event.kind == RangeKind::op && event.name == wanted;
  });
  if (wanted != "-") {
    INFO(names_of(profile));
    REQUIRE(op != profile.events.end());
    CHECK(op->parent == none);  // none of the raw function around it
    // It has the node, or the functions that it is made of have theirs.
    const auto self = static_cast<std::size_t>(op - profile.events.begin());
    const bool has_node = std::any_of(profile.events.begin(), profile.events.end(), [&](const Event& event) {
      std::size_t around = static_cast<std::size_t>(&event - profile.events.data());
      while (around != self && around != none) around = profile.events[around].parent;
      return event.sequence != 0 && around == self;
    });
    CHECK((has_node || c.order == 0));
    for (std::size_t i = 0; i < op->inputs.size() && i < inputs.size(); ++i)
      if (op->inputs[i].defined && inputs[i].defined() && op->inputs[i].shape == inputs[i].shape())
        CHECK(op->inputs[i].format == inputs[i].memory_format());
  }
  std::size_t nodes = 0;
  for (const Event& event : profile.events) {
    CAPTURE(event.name);
    if (event.kind == RangeKind::backward) {
      ++nodes;
      CHECK(event.forward != none);
      if (event.forward == none) continue;
      CHECK(event.name == profile.events[event.forward].name + "_backward");
    }
    // No layer repeats what the one around it has said.
    if (event.kind == RangeKind::op && event.parent != none)
      CHECK(profile.events[event.parent].name != event.name);
  }
  if (c.order > 0 && wanted != "-") CHECK(nodes >= 1);
}

void check_recorded(const test::OpCase& c) {
  for (const std::string layout : {"contiguous", "channels_last"}) {
    CAPTURE(layout);
    Tensors inputs = test::in_layout(test::typed(c.inputs, float32), layout);
    Tensors leaves;
    if (c.order > 0)
      for (Tensor& x : inputs)
        if (x.defined() && is_floating(x.dtype())) leaves.push_back(x.set_requires_grad());
    Profiler profiler({.activities = Activities::cpu});
    Tensors ys;
    for (const Tensor& y : c.run(inputs))
      if (y.requires_grad()) ys.push_back(y);
    if (!ys.empty()) {
      Tensors dys;
      for (const Tensor& y : ys) dys.push_back(test::constant(test::normal(y.shape(), 99), y));
      (void)grad(ys, leaves, dys, {.allow_unused = true});
    }
    profiler.stop();
    check_events(c, profiler.profile(), inputs);
  }
}

}  // namespace

PLEAT_TEST_FAMILIES("recorded", "[op_cases][profile][cpu]", check_recorded)
