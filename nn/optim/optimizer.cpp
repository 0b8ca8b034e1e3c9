#include "pleat/nn/optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/graph/host_tables.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/nn/listing.h"
#include "pleat/nn/optim/gradients.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::optim {
namespace {

std::string param_key(std::size_t index, const std::string& what) {
  return fmt::format("param.{}.{}", index, what);
}
std::string group_key(std::size_t index, const std::string& what) {
  return fmt::format("group.{}.{}", index, what);
}

/// The names of a ScheduledRate's numbers in a state.
constexpr std::array scheduled_names{"base_lr", "scheduled_lr", "lr_factor"};

/// A tensor in the parameter's layout, of the type in which it is updated.
Tensor new_state(const Tensor& param) {
  return empty_as({&param, 1}, param.shape(), compute_dtype(param.dtype()));
}

/// The problem of the elements of a state; empty for none.
std::string wrong_elements(const Tensor& state, bool of_squares) {
  if (state.numel() == 0) return {};
  if (!all(isfinite(state)).item<bool>()) return "must be finite";
  const double least = min(state).item();
  return of_squares && least < 0 ? fmt::format("must not be negative, has {}", least) : std::string();
}

/// The number of updates that a state counts, which other programs keep as a floating number; none when it is
/// no number of updates.
std::optional<int64_t> count_of(const Tensor& step) {
  if (step.dtype() == boolean) return {};
  const auto number = step.item<double>();
  if (!(number >= 0 && number <= 0x1p53) || number != std::floor(number)) return {};
  return static_cast<int64_t>(number);
}

}  // namespace

Optimizer::Optimizer(std::string name) : name_(std::move(name)), place_(std::make_shared<Optimizer*>(this)) {}

Optimizer::Optimizer(Optimizer&& other) noexcept : name_(other.name_), place_(std::move(other.place_)) {
  if (place_) *place_ = this;
}

Optimizer& Optimizer::operator=(Optimizer&& other) noexcept {
  if (this == &other) return *this;
  if (place_) *place_ = nullptr;
  name_ = other.name_;
  place_ = std::move(other.place_);
  if (place_) *place_ = this;
  return *this;
}

Optimizer::~Optimizer() {
  if (place_) *place_ = nullptr;
}

void Optimizer::check_not_moved_from() const {
  check<Error>(place_ != nullptr, "{}: this optimiser was moved from; use the one that it was moved to",
               name_);
}

void Optimizer::check_group_exists(std::size_t group, std::size_t groups) const {
  check_not_moved_from();
  check<IndexError>(group < groups, "{}: parameter group {} is outside [0, {})", name_, group, groups);
}

OptimizerRef::OptimizerRef(Optimizer& optimizer) : place_(optimizer.place_) {
  optimizer.check_not_moved_from();
}

Optimizer& OptimizerRef::get(const char* user) const {
  check<Error>(place_ != nullptr, "{}: it was moved from; use the one that it was moved to", user);
  check<Error>(*place_ != nullptr,
               "{}: its optimiser is gone, or another took its place; make both anew, the optimiser first",
               user);
  return **place_;
}

void Optimizer::step() { step_unless({}); }

void Optimizer::step_unless(const std::vector<Tensor>& found) {
  const RecordFunction range(name_, ".step");
  check_not_moved_from();
  check_options();
  if (nn::detail::Listing::any_unlisted()) nn::detail::Listing::check_gradients(name_, parameters());
  if (!has_gradient()) fail_without_gradients(name_, parameters());
  if (Capture* capture = Capture::current()) {
    std::vector<Tensor> gradients;
    for (const Tensor& param : parameters()) gradients.push_back(param.grad());
    capture->run_host_part([self = OptimizerRef(*this), gradients, found] {
      Optimizer& optimizer = self.get("CudaGraph.replay");
      const std::vector<Tensor> params = optimizer.parameters();
      check<Error>(params.size() == gradients.size(),
                   "{}: it has {} parameters, and had {} when the CUDA graph was captured; capture it again",
                   optimizer.name_, params.size(), gradients.size());
      // The parameters may have other gradients by now; the graph writes to these.
      for (std::size_t i = 0; i < params.size(); ++i) params[i].set_grad(gradients[i]);
      optimizer.update_parameters(found);
    });
  } else {
    update_parameters(found);
  }
}

void Optimizer::zero_grad() {
  const RecordFunction range(name_, ".zero_grad");
  for (const Tensor& param : parameters()) param.set_grad({});
}

double Optimizer::lr(std::size_t group) const {
  const auto [optimizer, own_group] = find(group);
  return optimizer.rates(own_group).lr;
}

std::optional<double> Optimizer::momentum(std::size_t group) const {
  const auto [optimizer, own_group] = find(group);
  return optimizer.rates(own_group).momentum;
}

void Optimizer::set_lr(std::size_t group, double lr) {
  const auto [optimizer, own_group] = find(group);
  optimizer.set_rates(own_group, {lr, std::nullopt});
}

void Optimizer::set_momentum(std::size_t group, double momentum) {
  const auto [optimizer, own_group] = find(group);
  optimizer.set_rates(own_group, {optimizer.rates(own_group).lr, momentum});
}

std::optional<ScheduledRate>& Optimizer::scheduled(std::size_t group) const {
  const auto [optimizer, own_group] = find(group);
  return optimizer.scheduled_[own_group];
}

void Optimizer::set_lr(double lr) {
  for (std::size_t group = 0; group < num_groups(); ++group) set_lr(group, lr);
}

void Optimizer::load_state_dict(const nn::StateDict& state) {
  check_not_moved_from();
  const std::string problems = state_problems(state);
  check<ValueError>(problems.empty(), "{}: the state does not fit{}", name_, problems);
  take_state(state);
}

void ParameterwiseOptimizer::add_parameters(const std::vector<Tensor>& params) {
  check<ValueError>(!params.empty(), "{}: got no parameters; a module lists its own in members()", name());
  std::vector<Entry> added;
  std::set<const TensorImpl*> known;
  for (const Entry& entry : entries_) known.insert(&entry.param.impl());
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Tensor& param = params[i];
    check<ValueError>(param.defined(), "{}: parameter {} is undefined", name(), i);
    check<DTypeError>(is_floating(param.dtype()), "{}: parameters must be floating, number {} is {}", name(),
                      i, param);
    check<ValueError>(param.is_leaf(),
                      "{}: parameter {}, {}, was computed by a function; only leaves can be trained", name(),
                      i, param);
    check<ValueError>(known.insert(&param.impl()).second, "{}: parameter {}, {}, is given twice", name(), i,
                      param);
    check_parameter(param);
    added.push_back({param, scheduled_.size(), std::vector<Tensor>(states_.size()),
                     std::vector<int64_t>(states_.size())});
  }
  for (const Tensor& param : params) nn::detail::Listing::hold(param);
  entries_.insert(entries_.end(), added.begin(), added.end());
  scheduled_.emplace_back();
}

void ParameterwiseOptimizer::check_options() const {
  for (std::size_t group = 0; group < scheduled_.size(); ++group) check_rates(group, rates(group));
}

void ParameterwiseOptimizer::set_rates(std::size_t group, const Rates& rates) {
  check_rates(group, rates);
  put_rates(group, rates);
}

std::size_t ParameterwiseOptimizer::num_groups() const {
  check_not_moved_from();
  return scheduled_.size();
}

Optimizer::GroupPlace ParameterwiseOptimizer::find(std::size_t group) const {
  check_group_exists(group, scheduled_.size());
  return {const_cast<ParameterwiseOptimizer&>(*this), group};
}

bool ParameterwiseOptimizer::has_gradient() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) { return entry.param.grad().defined(); });
}

void ParameterwiseOptimizer::update_parameters(const std::vector<Tensor>& found) {
  std::vector<ParamStep> steps;
  bool lack_state = false;
  for (Entry& entry : entries_) {
    const Tensor grad = entry.param.grad();
    if (!grad.defined()) continue;
    steps.push_back({entry, grad, {}});
    lack_state = lack_state || lacks_state(entry);
  }
  if (steps.empty()) return;
  if (lack_state) refuse_first_step();
  // A new state stores the number of updates before it.
  if (found.empty() || lack_state) know_steps();
  for (ParamStep& step : steps) {
    step.count.before = step.entry.step;
    if (found.empty()) continue;
    const Device device = step.entry.param.device();
    step.count.made = made_on(device, static_cast<std::size_t>(&step.entry - entries_.data()));
    const auto flag = std::ranges::find(found, device, &Tensor::device);
    check<Error>(flag != found.end(), "{}: nobody looked at the gradients on {}", name(), device);
    step.count.found = flag->data<int32_t>();
  }
  // A step that fails does not count, and moments of zeros that it left would be taken for
  // averages.
  std::vector<bool> had_state;
  for (const ParamStep& step : steps)
    for (const Tensor& state : step.entry.state) had_state.push_back(state.defined());
  try {
    update(steps);
  } catch (...) {
    auto had = had_state.begin();
    for (const ParamStep& step : steps)
      for (Tensor& state : step.entry.state)
        if (!*had++) state = {};
    throw;
  }
  // A captured update has not run yet.
  const HostTables* const tables = HostTables::current();
  if (found.empty() && (tables == nullptr || tables->replays()))
    for (const ParamStep& step : steps) ++step.entry.step;
}

void ParameterwiseOptimizer::put_parameters(const std::vector<Tensor>& parts) {
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].param = parts[i];
}

bool ParameterwiseOptimizer::lacks_state(const Entry& entry) const {
  for (std::size_t k = 0; k < states_.size(); ++k)
    if (!entry.state[k].defined() && needs_state(entry.group, k)) return true;
  return false;
}

void ParameterwiseOptimizer::refuse_first_step() const {
  if (const Capture* capture = Capture::current())
    capture->refuse((name() + ".step").c_str(),
                    "its state is made at the first step; train one before, or by `warmup`");
}

int64_t* ParameterwiseOptimizer::made_on(Device device, std::size_t entry) {
  auto made = std::ranges::find(made_, device, &Tensor::device);
  if (made == made_.end()) {
    refuse_first_step();
    made_.push_back(zeros({static_cast<int64_t>(entries_.size())}, {.dtype = int64, .device = device}));
    made = made_.end() - 1;
  }
  return made->data<int64_t>() + entry;
}

std::vector<int64_t> ParameterwiseOptimizer::steps() const {
  std::vector<int64_t> steps;
  for (const Entry& entry : entries_) steps.push_back(entry.step);
  for (const Tensor& made : made_) {
    const std::vector<int64_t> counts = made.to_vector<int64_t>();
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i] += counts[i];
  }
  return steps;
}

void ParameterwiseOptimizer::know_steps() {
  const std::vector<int64_t> known = steps();
  for (std::size_t i = 0; i < known.size(); ++i) entries_[i].step = known[i];
  made_.clear();
}

std::vector<Tensor> ParameterwiseOptimizer::parameters() const {
  check_not_moved_from();
  std::vector<Tensor> params;
  for (const Entry& entry : entries_) params.push_back(entry.param);
  return params;
}

Tensor& ParameterwiseOptimizer::state_of(Entry& entry, std::size_t state, double value) const {
  Tensor& tensor = entry.state[state];
  if (!tensor.defined()) {
    tensor = new_state(entry.param);
    entry.before[state] = entry.step;
    ops::fill(tensor, value);
  }
  return tensor;
}

nn::StateDict ParameterwiseOptimizer::state_dict() const {
  check_not_moved_from();
  nn::StateDict state;
  for (std::size_t group = 0; group < scheduled_.size(); ++group) {
    const auto put = [&](const char* name, double value) {
      state[group_key(group, name)] = scalar(value, float64);
    };
    const Rates now = rates(group);
    put("lr", now.lr);
    if (now.momentum) put(now.momentum_name, *now.momentum);
    if (const auto& by = scheduled_[group])
      for (std::size_t i = 0; const double value : {by->base_lr, by->lr, by->factor})
        put(scheduled_names[i++], value);
  }
  const std::vector<int64_t> made = steps();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    state[param_key(i, "step")] = scalar(made[i], int64);
    for (std::size_t k = 0; k < states_.size(); ++k)
      // A state that no update has changed counts as missing.
      if (entry.state[k].defined() && made[i] != entry.before[k])
        state[param_key(i, states_[k].name)] = ops::copy(entry.state[k]);
  }
  return state;
}

std::string ParameterwiseOptimizer::state_problems(const nn::StateDict& state) const {
  std::string problems;
  std::set<std::string> used;
  /// The tensor of this name, when it has the right shape and can be read as numbers.
  const auto look_at = [&](const std::string& key, const Shape& shape, bool needed) -> const Tensor* {
    used.insert(key);
    const auto found = state.find(key);
    if (found == state.end()) {
      if (needed) problems += "\n  missing     " + key;
    } else if (!found->second.defined() || found->second.shape() != shape) {
      problems += fmt::format("\n  shape       {}  needs {}, got {}", key, shape, found->second.describe());
    } else {
      return &found->second;
    }
    return nullptr;
  };
  const auto look_at_floating = [&](const std::string& key, const Shape& shape,
                                    bool needed) -> const Tensor* {
    const Tensor* found = look_at(key, shape, needed);
    if (found == nullptr || is_floating(found->dtype())) return found;
    problems += fmt::format("\n  type        {}  needs a floating type, got {}", key, found->dtype());
    return nullptr;
  };

  for (std::size_t group = 0; group < scheduled_.size(); ++group) {
    Rates wanted = rates(group);
    const Tensor* lr = look_at_floating(group_key(group, "lr"), {}, true);
    if (wanted.momentum) {
      const Tensor* momentum = look_at_floating(group_key(group, wanted.momentum_name), {}, true);
      if (momentum != nullptr) wanted.momentum = momentum->item();
    }
    try {
      if (lr != nullptr) check_rates(group, {lr->item(), wanted.momentum});
    } catch (const ValueError& error) {
      problems += fmt::format("\n  value       group.{}  {}", group, error.what());
    }
    if (!state.contains(group_key(group, scheduled_names[0]))) continue;
    for (const std::string name : scheduled_names) {
      const Tensor* value = look_at_floating(group_key(group, name), {}, true);
      if (value != nullptr && !std::isfinite(value->item()))
        problems += fmt::format("\n  value       {}  must be finite", group_key(group, name));
    }
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const std::string step_key = param_key(i, "step");
    int64_t steps = 0;
    if (const Tensor* step = look_at(step_key, {}, true)) {
      const std::optional<int64_t> count = count_of(*step);
      steps = count.value_or(0);
      if (!count)
        problems +=
            fmt::format("\n  value       {}  needs a number of steps, got {}", step_key,
                        step->dtype() == boolean ? "a bool" : fmt::format("{}", step->item<double>()));
    }
    for (std::size_t k = 0; k < states_.size(); ++k) {
      const std::string key = param_key(i, states_[k].name);
      const Tensor* kept =
          look_at_floating(key, entry.param.shape(), steps > 0 && needs_state(entry.group, k));
      const DType type = compute_dtype(entry.param.dtype());
      const std::string wrong =
          kept != nullptr ? wrong_elements(ops::cast(*kept, type), states_[k].of_squares) : "";
      if (!wrong.empty()) problems += fmt::format("\n  value       {}  {}", key, wrong);
    }
  }
  for (const auto& [key, tensor] : state)
    if (!used.contains(key)) problems += fmt::format("\n  unexpected  {}  {}", key, tensor.describe());
  return problems;
}

void ParameterwiseOptimizer::take_state(const nn::StateDict& state) {
  std::vector<Entry> entries = entries_;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    entry.step = count_of(state.at(param_key(i, "step"))).value_or(0);
    for (std::size_t k = 0; k < states_.size(); ++k) {
      const auto given = state.find(param_key(i, states_[k].name));
      entry.state[k] = given != state.end() ? new_state(entry.param) : Tensor();
      entry.before[k] = -1;
      if (given != state.end())
        ops::copy_into(entry.state[k], ops::to_device(given->second, entry.param.device()));
    }
  }
  entries_ = std::move(entries);
  made_.clear();
  for (std::size_t group = 0; group < scheduled_.size(); ++group) {
    const auto number = [&](const char* name) { return state.at(group_key(group, name)).item(); };
    Rates loaded = rates(group);
    loaded.lr = number("lr");
    if (loaded.momentum) loaded.momentum = number(loaded.momentum_name);
    put_rates(group, loaded);
    scheduled_[group].reset();
    if (state.contains(group_key(group, scheduled_names[0])))
      scheduled_[group] = {.base_lr = number(scheduled_names[0]),
                           .lr = number(scheduled_names[1]),
                           .factor = number(scheduled_names[2])};
  }
}

}  // namespace pleat::optim
