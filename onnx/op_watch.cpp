#include "pleat/onnx/op_watch.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "pleat/core/base/fork.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/trace.h"

namespace pleat::onnx {
namespace {

constinit thread_local OpWatch* watch_of_thread = nullptr;

/// Passes all events on to the observer that was set before it (a profiler), as there can be one only.
class Listener final : public RangeObserver {
 public:
  uint64_t begin(const RangeStart& start) noexcept override {
    RangeObserver* next = next_.load();
    const uint64_t token = next != nullptr ? next->begin(start) : 0;
    OpWatch* watch =
        start.kind == RangeKind::op && detail::call_observer != nullptr ? watch_of_thread : nullptr;
    if (watch != nullptr) watch->begin(start.name, start.inputs);
    open().push_back({token, watch});
    return open().size();
  }
  void end(uint64_t token) noexcept override {
    // One that began before this listener was set.
    if (token == 0 || token != open().size()) return forward_end(token);
    const Open range = open().back();
    open().pop_back();
    if (range.watch != nullptr) range.watch->end();
    forward_end(range.token);
  }
  void add(uint64_t token, const RangeDetails& details) noexcept override {
    RangeObserver* next = next_.load();
    if (next != nullptr && token > 0 && token <= open().size() && open()[token - 1].token != 0)
      next->add(open()[token - 1].token, details);
  }
  void recorded(std::string_view name, uint64_t sequence) noexcept override {
    if (RangeObserver* next = next_.load()) next->recorded(name, sequence);
  }
  void memory(const void* address, int64_t bytes, Device device) noexcept override {
    if (RangeObserver* next = next_.load()) next->memory(address, bytes, device);
  }

  void set_next(RangeObserver* next) { next_.store(next); }
  RangeObserver* next() const { return next_.load(); }

 private:
  struct Open {
    uint64_t token;
    OpWatch* watch;
  };
  static std::vector<Open>& open() {
    thread_local ThreadObject<std::vector<Open>> ranges;
    return *ranges;
  }
  void forward_end(uint64_t token) noexcept {
    RangeObserver* next = next_.load();
    if (next != nullptr && token != 0) next->end(token);
  }

  std::atomic<RangeObserver*> next_{nullptr};
};

Listener& listener() {
  static auto& one = *new Listener;
  return one;
}

/// How many watches exist in the process; the first sets the listener, the last takes it away.
struct Users {
  ForkMutex<std::mutex> mutex;
  int count = 0;
};
Users& users() {
  static auto& all = *new Users;
  return all;
}

}  // namespace

uint64_t next_tensor_id() {
  static const auto& some = *new Tensor(zeros({1}, Device{}));
  return some.as_strided({1}, {1}, 0).impl().id + 1;
}

OpWatch::OpWatch(std::function<bool(const Tensor&)> depends) : depends_(std::move(depends)) {
  next_tensor_id();
  const std::lock_guard lock(users().mutex);
  if (users().count++ == 0) {
    listener().set_next(detail::range_observer.load());
    set_range_observer(&listener());
  }
  watch_of_thread = this;
}

OpWatch::~OpWatch() {
  watch_of_thread = nullptr;
  const std::lock_guard lock(users().mutex);
  if (--users().count == 0) set_range_observer(listener().next());
}

void OpWatch::begin(std::string_view name, std::span<const Tensor* const> inputs) {
  Frame frame{.name = std::string(name), .first_id = 0, .inputs = {}};
  for (const Tensor* input : inputs) {
    if (!input->defined()) continue;
    frame.inputs.push_back({*input, input->version(), depends_(*input)});
    frame.reads = frame.reads || frame.inputs.back().depends;
  }
  if (open_.empty() && frame.reads && (name == "item" || name == "to_vector")) reads_numbers_ = true;
  frame.first_id = next_tensor_id();
  open_.push_back(std::move(frame));
}

void OpWatch::end() {
  const Frame frame = std::move(open_.back());
  open_.pop_back();
  if (!frame.reads) return;
  for (const Frame::Input& input : frame.inputs) {
    const std::shared_ptr<Storage>& storage = input.tensor.impl().storage;
    // One that was changed by itself alone depends on no more than before.
    const bool by_another = std::any_of(
        frame.inputs.begin(), frame.inputs.end(),
        [&](const Frame::Input& other) { return other.depends && other.tensor.impl().storage != storage; });
    if (input.tensor.version() != input.version && by_another) changed_.push_back({storage, frame.name});
  }
  if (!frame.composed) made_.push_back({frame.first_id, next_tensor_id(), frame.name});
}

void OpWatch::saw_call() {
  for (Frame& frame : open_) frame.composed = true;
}

std::optional<std::string> OpWatch::maker_of(const Tensor& tensor) const {
  for (const Made& made : made_)
    if (tensor.impl().id >= made.first_id && tensor.impl().id < made.end_id) return made.name;
  for (const Changed& changed : changed_)
    if (changed.storage == tensor.impl().storage) return changed.name;
  return std::nullopt;
}

}  // namespace pleat::onnx
