#include "pleat/dist/data_parallel.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/gradient_watcher.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/dist/buckets.h"
#include "pleat/dist/collectives.h"
#include "pleat/dist/model_check.h"
#include "pleat/dist/raw_collectives.h"
#include "pleat/ops/elementwise/arithmetic.h"

/// Gradients lie in buckets, each of which is reduced when the gradients of its parameters are complete. The
/// buckets go in one order on all ranks, which is learnt in the first backward.

namespace pleat::dist {
namespace {

constexpr double bytes_in_megabyte = 1 << 20;
constexpr double most_megabytes = 1 << 20;

bool is_same_part(const Tensor& a, const Tensor& b) {
  return a.raw() == b.raw() && a.shape() == b.shape() && a.strides() == b.strides();
}

/// Tensors of one type, copied into one and back.
class Packed {
 public:
  explicit Packed(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
    int64_t elements = 0;
    for (const Tensor& t : tensors_) elements += t.numel();
    all_ = empty({elements}, {.dtype = tensors_.front().dtype(), .device = tensors_.front().device()});
    each([](const Tensor& part, const Tensor& t) { ops::copy_into(part, t); });
  }
  const Tensor& all() const { return all_; }
  void unpack() const {
    each([](const Tensor& part, const Tensor& t) { ops::copy_into(t, part); });
  }

 private:
  template <class F>
  void each(const F& f) const {
    int64_t offset = 0;
    for (const Tensor& t : tensors_) {
      f(all_.as_strided(t.shape(), dense_strides(t.shape()), offset), t);
      offset += t.numel();
    }
  }

  std::vector<Tensor> tensors_;
  Tensor all_;
};

}  // namespace

/// Watches the gradients of a network's parameters, and reduces them.
class DataParallel::Reducer : public autograd::GradientWatcher {
 public:
  Reducer(nn::Module& net, const Communicator& world, const DataParallelOptions& options)
      : net_(net),
        world_(world),
        engine_(*EngineAccess::of(world)),
        options_(options),
        params_(net.parameters()) {
    const std::size_t count = params_.size();
    dirty_.resize(count);
    order_.resize(count);
    std::iota(order_.rbegin(), order_.rend(), 0);  // what is used last has its gradient first
    make();
  }

  void begin(const std::vector<std::size_t>& reached, bool others_may_come) override {
    check<AutogradError>(
        !grad_enabled(),
        "DataParallel: backward with create_graph = true would record gradients that are "
        "not reduced yet; take pleat::grad() and dist::all_reduce(), which are differentiable");
    active_ = sync_;
    if (!active_) {
      for (const std::size_t i : reached) dirty_[i] = true;
      return;
    }
    if (has_changed()) make();
    // Of a backward that an exception ended.
    for (const std::optional<Call>& call : calls_)
      if (call) wait(engine_, *call);
    buffers_.clear();
    state_.assign(params_.size(), State::absent);
    waiting_.assign(made_.buckets.size(), 0);
    calls_.clear();
    compressed_.clear();
    completed_.clear();
    next_ = 0;
    all_at_end_ = others_may_come;
    for (const std::size_t i : reached) {
      state_[i] = State::expected;
      if (trained_[i]) ++waiting_[made_.bucket_of[i]];
    }
    if (all_at_end_) return;
    start();
    reduce_full_buckets();
  }

  void complete(std::size_t i) override {
    if (!active_ || !trained_[i]) return;
    state_[i] = State::here;
    completed_.push_back(i);
    move_into_bucket(i);
    --waiting_[made_.bucket_of[i]];
    if (!all_at_end_) reduce_full_buckets();
  }

  void reached_inside(std::size_t i) override {
    if (!active_) {
      dirty_[i] = true;
      return;
    }
    check<AutogradError>(
        all_at_end_,
        "DataParallel: a function called backward() inside of backward, which reached a "
        "parameter whose gradient is on its way to the other ranks; checkpoint() may do that");
    if (state_[i] == State::absent) state_[i] = State::expected;
  }

  void end() override {
    if (!active_) return;
    if (all_at_end_) {
      start();
      std::fill(waiting_.begin(), waiting_.end(), 0);
    }
    reduce_full_buckets();
    const RecordFunction range("DataParallel.wait");
    for (std::size_t b = 0; b < made_.buckets.size(); ++b) {
      if (!calls_[b]) continue;
      wait(engine_, *std::exchange(calls_[b], {}));
      if (compressed_[b].defined()) ops::copy_into(made_.buckets[b].elements, compressed_[b]);
      for (const std::size_t i : made_.buckets[b].members)
        if (used_[i]) params_[i].set_grad(made_.views[i]);
    }
    for (auto& [packed, call] : buffers_) {
      wait(engine_, call);
      packed.unpack();
    }
    buffers_.clear();
    std::fill(dirty_.begin(), dirty_.end(), false);
    if (!std::exchange(order_is_learnt_, true) && !all_at_end_) learn_order();
    active_ = false;
  }

  Tensor weighted(const Tensor& y, int64_t samples) {
    check<ValueError>(
        samples >= 1,
        "DataParallel: rank {} was given no samples; every rank needs at least one, as a DataLoader "
        "with .rank and .world_size gives it",
        world_.rank());
    const Tensor all = full({}, samples, {.dtype = int64, .device = Device{}});
    const Call call = begin_all_reduce(engine_, all, ReduceOp::sum, "samples of a batch");
    const double own = static_cast<double>(samples) * world_.size();
    const Communicator world = world_;
    return record("data_parallel", y.detach(), {y}, [call, all, own, world](const Tensor& dy) -> Grads {
      wait(*EngineAccess::of(world), call);
      const double weight = own / static_cast<double>(all.item<int64_t>());
      return {weight == 1 ? dy : dy * weight};
    });
  }

  bool sync() const { return sync_; }
  void set_sync(bool sync) { sync_ = sync; }
  int64_t num_buckets() const { return std::ssize(made_.buckets); }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  /// Where the gradient of a parameter is.
  enum class State : unsigned char { absent, expected, here };

  /// Whether parameters were frozen, converted or moved since the buckets were made.
  bool has_changed() const {
    for (std::size_t i = 0; i < params_.size(); ++i) {
      if (params_[i].requires_grad() != trained_[i]) return true;
      if (!trained_[i]) continue;
      const Tensor& view = made_.views[i];
      if (view.dtype() != params_[i].dtype() || view.device() != params_[i].device() ||
          view.shape() != params_[i].shape())
        return true;
    }
    return false;
  }

  void make() {
    trained_.clear();
    for (const Tensor& param : params_) trained_.push_back(param.requires_grad());
    std::vector<std::size_t> order;
    for (const std::size_t i : order_)
      if (trained_[i]) order.push_back(i);
    made_ = make_buckets(params_, order,
                         static_cast<int64_t>(options_.first_bucket_megabytes * bytes_in_megabyte),
                         static_cast<int64_t>(options_.bucket_megabytes * bytes_in_megabyte));
  }

  /// Finds out which parameters any rank has used, and sends the buffers of rank 0.
  void start() {
    std::vector<uint8_t> used(params_.size());
    for (std::size_t i = 0; i < used.size(); ++i) used[i] = state_[i] != State::absent || dirty_[i] ? 1 : 0;
    used_tensor_ = from_vector(used, used.size(), Device{});
    used_.clear();
    used_call_ = begin_all_reduce(engine_, used_tensor_, ReduceOp::max, "parameters in use");
    if (!options_.broadcast_buffers) return;
    std::map<std::pair<DType, std::string>, std::vector<Tensor>> groups;
    for (const auto& [name, buffer] : net_.named_buffers())
      groups[{buffer.dtype(), pleat::name(buffer.device())}].push_back(buffer);
    for (auto& [key, group] : groups) {
      Packed packed(std::move(group));
      auto call = begin_broadcast(engine_, packed.all(), 0, "buffers of the network");
      buffers_.emplace_back(std::move(packed), std::move(call));
    }
  }

  /// Makes the bucket's memory the parameter's gradient.
  void move_into_bucket(std::size_t i) {
    const Tensor gradient = params_[i].grad();
    if (!gradient.defined()) {
      ops::fill(made_.views[i], 0);
    } else if (!is_same_part(gradient, made_.views[i])) {
      ops::copy_into(made_.views[i], gradient);
      params_[i].set_grad(made_.views[i]);
    }
  }

  /// Reduces the buckets that are full, in their order, which is the same on all ranks.
  void reduce_full_buckets() {
    while (next_ < made_.buckets.size() && waiting_[next_] == 0) reduce(next_++);
  }

  void reduce(std::size_t b) {
    if (used_.empty()) {
      wait(engine_, used_call_);
      used_ = used_tensor_.to_vector<uint8_t>();
    }
    const Bucket& bucket = made_.buckets[b];
    calls_.emplace_back();
    compressed_.emplace_back();
    if (std::none_of(bucket.members.begin(), bucket.members.end(),
                     [&](std::size_t i) { return used_[i] != 0; }))
      return;
    for (const std::size_t i : bucket.members) {
      if (state_[i] == State::here) continue;
      if (state_[i] == State::expected || dirty_[i])
        move_into_bucket(i);
      else
        ops::fill(made_.views[i], 0);
    }
    Tensor sent = bucket.elements;
    if (options_.reduce_dtype && !is_half(sent.dtype()))
      sent = compressed_.back() = ops::cast(bucket.elements, *options_.reduce_dtype);
    calls_.back() = begin_all_reduce(engine_, sent, ReduceOp::mean, fmt::format("bucket {}", b));
  }

  /// From the first backward of rank 0.
  void learn_order() {
    std::vector<bool> seen(params_.size());
    for (const std::size_t i : completed_) seen[i] = true;
    for (const std::size_t i : order_)
      if (!seen[i]) completed_.push_back(i);
    const std::vector<int64_t> numbers(completed_.begin(), completed_.end());
    const std::vector<int64_t> of_main =
        broadcast(from_vector(numbers, numbers.size(), Device{}), world_).to_vector<int64_t>();
    const std::vector<std::size_t> order(of_main.begin(), of_main.end());
    if (order == order_) return;
    order_ = order;
    make();
  }

  nn::Module& net_;
  const Communicator world_;
  Engine& engine_;
  const DataParallelOptions options_;
  const std::vector<Tensor> params_;
  std::vector<std::size_t> order_;  ///< in which gradients are complete
  bool order_is_learnt_ = false;
  std::vector<bool> trained_;  ///< those that required a gradient when the buckets were made
  Buckets made_;
  bool sync_ = true;
  std::vector<bool> dirty_;  ///< whether a parameter's gradient has something that was not reduced

  // Of one backward.
  bool active_ = false;
  bool all_at_end_ = false;  ///< gradients may come inside of a node
  std::vector<State> state_;
  std::vector<int64_t> waiting_;            ///< of each bucket: gradients that are still to come
  std::size_t next_ = 0;                    ///< the bucket to reduce next
  std::vector<std::optional<Call>> calls_;  ///< of each bucket; none where no rank has used it
  std::vector<Tensor> compressed_;
  std::vector<std::size_t> completed_;  ///< parameters in the order their gradients were complete
  Tensor used_tensor_;
  Call used_call_;
  std::vector<uint8_t> used_;  ///< whether any rank has used it; empty: not known yet
  std::vector<std::pair<Packed, Call>> buffers_;
};

DataParallel::DataParallel(nn::Module& net, Communicator world, DataParallelOptions options)
    : net_(net), world_(std::move(world)), options_(options) {
  const auto is_size = [](double megabytes) { return megabytes > 0 && megabytes <= most_megabytes; };
  check<ValueError>(is_size(options.bucket_megabytes) && is_size(options.first_bucket_megabytes),
                    "DataParallel: bucket sizes must be above 0 and at most {} MB, got {} and {} MB",
                    most_megabytes, options.bucket_megabytes, options.first_bucket_megabytes);
  check<ValueError>(options.batch_dim >= 0, "DataParallel: batch_dim must not be negative, got {}",
                    options.batch_dim);
  check<ValueError>(!options.reduce_dtype || is_half(*options.reduce_dtype),
                    "DataParallel: reduce_dtype must be float16 or bfloat16, got {}",
                    options.reduce_dtype.value_or(float32));
  if (world_.size() == 1) return;
  check_same_model(net, world_);
  for (const Tensor& param : net.parameters()) broadcast_(param, world_);
  for (const auto& [name, buffer] : net.named_buffers()) broadcast_(buffer, world_);
  reducer_ = std::make_shared<Reducer>(net, world_, options);
  const std::vector<Tensor>& params = reducer_->params();
  for (std::size_t i = 0; i < params.size(); ++i) autograd::watch_gradient(params[i], reducer_, i);
}

DataParallel::~DataParallel() = default;

Tensor DataParallel::forward(const Tensor& x) {
  check<ShapeError>(x.rank() > options_.batch_dim,
                    "DataParallel: dimension {} of the input is that of samples (batch_dim), got {}",
                    options_.batch_dim, x);
  const Tensor y = net_(x);
  return weighted(y, x.size(options_.batch_dim));
}

Tensor DataParallel::weighted(const Tensor& y, int64_t samples) {
  if (!reducer_ || !grad_enabled() || !y.requires_grad()) return y;
  return reducer_->weighted(y, samples);
}

std::string DataParallel::options_text() const {
  return fmt::format("rank {} of {}", world_.rank(), world_.size());
}

int64_t DataParallel::num_buckets() const { return reducer_ ? reducer_->num_buckets() : 0; }

DataParallel::NoSync::NoSync(DataParallel& of) : of_(of), before_(!of.reducer_ || of.reducer_->sync()) {
  if (of.reducer_) of.reducer_->set_sync(false);
}
DataParallel::NoSync::~NoSync() {
  if (of_.reducer_) of_.reducer_->set_sync(before_);
}

}  // namespace pleat::dist
