#include "pleat/dist/sharded_optimizer.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "pleat/core/base/format.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/dist/collectives.h"
#include "pleat/dist/engine.h"
#include "pleat/dist/raw_collectives.h"

namespace pleat::dist {
namespace {

/// Of what all ranks give each other in one call.
constexpr int64_t gathered_bytes = int64_t{16} << 20;

/// Elements of a dense tensor in the order of its memory: [end - begin].
Tensor part_of_memory(const Tensor& x, int64_t begin, int64_t end) {
  return x.detach().as_strided({end - begin}, {1}, x.offset() + begin);
}

/// On the CPU, as the parameter lies in memory.
Tensor empty_state(const Tensor& param) {
  return empty(param.shape(), {.dtype = compute_dtype(param.dtype()), .device = Device{}})
      .as_strided(param.shape(), param.strides(), 0);
}

std::string state_key(std::size_t param, const std::string& state) {
  return fmt::format("param.{}.{}", param, state);
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(DataParallel& ddp, std::unique_ptr<optim::ParameterwiseOptimizer> inner)
    : Optimizer("ShardedOptimizer"),
      world_(ddp.world()),
      inner_(std::move(inner)),
      params_(inner_->parameters()) {
  std::set<const TensorImpl*> averaged;
  for (const Tensor& param : ddp.parameters()) averaged.insert(&param.impl());
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const Tensor& param = params_[i];
    check<ValueError>(averaged.contains(&param.impl()),
                      "ShardedOptimizer: parameter {}, {}, is not in the network of the DataParallel, so its "
                      "gradient is not averaged over the ranks",
                      i, param);
    check<ValueError>(param.is_dense(),
                      "ShardedOptimizer: parameter {}, {}, has gaps in its memory; make it of a clone()", i,
                      param);
    as_made_.push_back(param.detach());
  }
  if (Engine* const engine = EngineAccess::of(world_))
    engine->wait(engine->submit(text(ddp), [](Transport&) {}));
  make_rows();
  const nn::StateDict state = inner_->state_dict();  // of whole parameters
  put_own_parts();
  take_state(state);
}

std::string ShardedOptimizer::text(DataParallel& ddp) const {
  std::map<const TensorImpl*, std::size_t> numbers;
  for (const Tensor& param : ddp.parameters()) numbers.emplace(&param.impl(), numbers.size());
  std::string order;
  for (std::size_t i = 0; i < params_.size(); ++i)
    order += fmt::format("{} in {}, ", numbers.at(&params_[i].impl()), inner_->entries_[i].group);
  std::string rates;
  for (std::size_t group = 0; group < inner_->num_groups(); ++group)
    rates += fmt::format(", lr {}, momentum {}", inner_->lr(group), inner_->momentum(group).value_or(0));
  return fmt::format("ShardedOptimizer of {} with {} parameters, in an order and groups with the hash {:x}{}",
                     inner_->name(), params_.size(), std::hash<std::string>()(order), rates);
}

void ShardedOptimizer::check_unchanged() const {
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const Tensor &now = params_[i], &before = as_made_[i];
    check<Error>(
        now.dtype() == before.dtype() && now.device() == before.device() && now.shape() == before.shape() &&
            now.strides() == before.strides(),
        "ShardedOptimizer: parameter {} was {} when the optimiser was made, and is {} now; convert, move "
        "or lay out the network first",
        i, before, now);
  }
}

void ShardedOptimizer::make_rows() {
  std::map<std::pair<DType, std::string>, std::size_t> row_of;
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const Tensor& param = params_[i];
    const auto [found, is_new] =
        row_of.emplace(std::pair{param.dtype(), pleat::name(param.device())}, rows_.size());
    if (is_new) rows_.push_back({.dtype = param.dtype(), .device = param.device()});
    Row& row = rows_[found->second];
    row.members.push_back(i);
    row.starts.push_back(row.size);
    row.size += param.numel();
  }
  for (Row& row : rows_)
    for (int rank = 0; rank <= world_.size(); ++rank) {
      int64_t bound = row.size * rank / world_.size();
      if (!inner_->is_elementwise()) {
        const auto next = std::ranges::lower_bound(row.starts, bound);
        bound = next == row.starts.end() ? row.size : *next;
      }
      row.bounds.push_back(bound);
    }
}

std::vector<ShardedOptimizer::Piece> ShardedOptimizer::pieces(const Row& row, int64_t begin,
                                                              int64_t end) const {
  std::vector<Piece> all;
  for (std::size_t k = 0; k < row.members.size(); ++k) {
    const int64_t start = row.starts[k];
    const Piece piece{.param = row.members[k],
                      .begin = std::max(begin, start) - start,
                      .end = std::min(end, start + params_[row.members[k]].numel()) - start};
    if (piece.begin < piece.end) all.push_back(piece);
  }
  return all;
}

std::vector<ShardedOptimizer::Piece> ShardedOptimizer::pieces_of(int rank) const {
  std::vector<Piece> all;
  for (const Row& row : rows_)
    for (const Piece& piece : pieces(row, row.bounds[static_cast<std::size_t>(rank)],
                                     row.bounds[static_cast<std::size_t>(rank) + 1]))
      all.push_back(piece);
  return all;
}

void ShardedOptimizer::put_own_parts() const {
  std::vector<Tensor> parts;
  for (const Tensor& param : params_) parts.push_back(part_of_memory(param, 0, 0));
  for (const Piece& piece : pieces_of(world_.rank())) parts[piece.param] = part(params_[piece.param], piece);
  inner_->put_parameters(parts);
}

Tensor ShardedOptimizer::part(const Tensor& param, const Piece& piece) const {
  return inner_->is_elementwise() ? part_of_memory(param, piece.begin, piece.end) : param.detach();
}

void ShardedOptimizer::update_parameters(const std::vector<Tensor>& found) {
  if (const Capture* capture = Capture::current())
    capture->refuse("ShardedOptimizer.step", "ranks give each other what they have updated");
  check_unchanged();
  put_own_parts();
  const std::vector<Tensor> parts = inner_->parameters();
  for (const Piece& piece : pieces_of(world_.rank())) {
    const Tensor& param = params_[piece.param];
    Tensor gradient = param.grad();
    if (!gradient.defined()) continue;
    if (gradient.strides() != param.strides()) {
      const Tensor as_param = empty_like(param).as_strided(param.shape(), param.strides(), 0);
      ops::copy_into(as_param, gradient);
      gradient = as_param;
    }
    parts[piece.param].set_grad(part(gradient, piece));
  }
  inner_->update_parameters(found);
  for (const Tensor& own : parts) own.set_grad({});
  if (world_.size() == 1) return;
  for (const Row& row : rows_) gather(row);
}

void ShardedOptimizer::gather(const Row& row) const {
  int64_t longest = 0;
  for (std::size_t rank = 0; rank + 1 < row.bounds.size(); ++rank)
    longest = std::max(longest, row.bounds[rank + 1] - row.bounds[rank]);
  const int64_t chunk =
      std::max<int64_t>(1, std::min(longest, gathered_bytes / size_of(row.dtype) / world_.size()));
  /// Copies between a rank's part of the row, from `first` on, and memory from `offset` on.
  const auto copy = [&](int rank, int64_t first, const Tensor& memory, int64_t offset, bool from_row) {
    const int64_t begin = row.bounds[static_cast<std::size_t>(rank)] + first;
    const int64_t end = std::min(begin + chunk, row.bounds[static_cast<std::size_t>(rank) + 1]);
    for (const Piece& piece : pieces(row, begin, end)) {
      const Tensor elements = part_of_memory(params_[piece.param], piece.begin, piece.end);
      const Tensor place = part_of_memory(memory, offset, offset + elements.numel());
      offset += elements.numel();
      ops::copy_into(from_row ? place : elements, from_row ? elements : place);
    }
  };
  Engine& engine = *EngineAccess::of(world_);
  const TensorOptions options{.dtype = row.dtype,
                              .device = moving_device(&engine, "ShardedOptimizer", params_[row.members[0]])};
  const Tensor own = zeros({chunk}, options), all = zeros({chunk * world_.size()}, options);
  for (int64_t first = 0; first < longest; first += chunk) {
    copy(world_.rank(), first, own, 0, true);
    wait(engine, begin_all_gather(engine, own, all, "parameters of ShardedOptimizer"));
    for (int rank = 0; rank < world_.size(); ++rank)
      if (rank != world_.rank()) copy(rank, first, all, rank * chunk, false);
  }
}

optim::ParameterwiseOptimizer& ShardedOptimizer::inner() {
  check_not_moved_from();
  return *inner_;
}

int64_t ShardedOptimizer::num_own_elements() const {
  check_not_moved_from();
  int64_t elements = 0;
  for (const Piece& piece : pieces_of(world_.rank())) elements += piece.end - piece.begin;
  return elements;
}

std::vector<Tensor> ShardedOptimizer::parameters() const {
  check_not_moved_from();
  return params_;
}

std::size_t ShardedOptimizer::num_groups() const {
  check_not_moved_from();
  return inner_->num_groups();
}

optim::Optimizer::GroupPlace ShardedOptimizer::find(std::size_t group) const {
  check_not_moved_from();
  return inner_->find(group);
}

void ShardedOptimizer::check_options() const { inner_->check_options(); }

bool ShardedOptimizer::has_gradient() const {
  return std::ranges::any_of(params_, [](const Tensor& param) { return param.grad().defined(); });
}

nn::StateDict ShardedOptimizer::state_dict() const {
  check_not_moved_from();
  check_unchanged();
  nn::StateDict state = inner_->state_dict();  // of the own parts
  // A rank knows only the steps and states of parameters of which it has a part.
  std::vector<int64_t> known;
  for (std::size_t i = 0; i < params_.size(); ++i) {
    known.push_back(state.at(state_key(i, "step")).item<int64_t>());
    for (const auto& [name, of_squares] : inner_->states_)
      known.push_back(state.contains(state_key(i, name)) ? 1 : 0);
  }
  const Tensor of_all = from_vector(known, known.size(), Device{});
  if (Engine* const engine = EngineAccess::of(world_))
    wait(*engine, begin_all_reduce(*engine, of_all, ReduceOp::max, "ShardedOptimizer.state_dict"));
  known = of_all.to_vector<int64_t>();

  std::vector<std::vector<std::pair<int, Piece>>> pieces_by_param(params_.size());
  for (int rank = 0; rank < world_.size(); ++rank)
    for (const Piece& piece : pieces_of(rank)) pieces_by_param[piece.param].emplace_back(rank, piece);
  auto next = known.begin();
  for (std::size_t i = 0; i < params_.size(); ++i) {
    // An element that does not exist has no state after a step.
    const int64_t steps = *next++;
    state[state_key(i, "step")] = full({}, params_[i].numel() == 0 ? 0 : steps, {.dtype = int64});
    for (const auto& [name, of_squares] : inner_->states_) {
      if (*next++ == 0) continue;
      const Tensor whole = empty_state(params_[i]);
      for (const auto& [rank, piece] : pieces_by_param[i]) {
        const Tensor elements = part_of_memory(whole, piece.begin, piece.end);
        if (rank == world_.rank()) {
          const Tensor& own = state.at(state_key(i, name));
          ops::copy_into(elements, part_of_memory(own, 0, own.numel()));
        }
        broadcast_(elements, world_, rank);
      }
      state[state_key(i, name)] = whole;
    }
  }
  for (auto& [name, tensor] : state) tensor = ops::to_device(tensor, Device{});
  return state;
}

std::string ShardedOptimizer::state_problems(const nn::StateDict& state) const {
  check_unchanged();
  inner_->put_parameters(params_);
  std::string problems = inner_->state_problems(state);
  put_own_parts();
  return problems;
}

void ShardedOptimizer::take_state(const nn::StateDict& state) {
  nn::StateDict own = state;
  for (std::size_t i = 0; i < params_.size(); ++i)
    for (const auto& [name, of_squares] : inner_->states_) own.erase(state_key(i, name));
  for (const Piece& piece : pieces_of(world_.rank()))
    for (const auto& [name, of_squares] : inner_->states_) {
      const auto given = state.find(state_key(piece.param, name));
      if (given == state.end()) continue;
      const Tensor whole = empty_state(params_[piece.param]);
      ops::copy_into(whole, ops::to_device(given->second, Device{}));
      own[given->first] = part(whole, piece);
    }
  inner_->take_state(own);
}

}  // namespace pleat::dist
