#include "pleat/core/base/record_function.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/tensor/create.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

/// Writes down what it hears, one line for each call.
class Listener final : public RangeObserver {
 public:
  uint64_t begin(const RangeStart& start) noexcept override {
    const std::lock_guard lock(mutex_);
    std::string line = "begin " + std::string(start.name);
    if (!start.module_path.empty()) line += " at " + std::string(start.module_path);
    for (const Tensor* input : start.inputs) line += ' ' + to_string(input->shape());
    lines_.push_back(line);
    kinds.push_back(start.kind);
    return ++tokens_;
  }
  void end(uint64_t token) noexcept override {
    const std::lock_guard lock(mutex_);
    lines_.push_back("end " + std::to_string(token));
  }
  void add(uint64_t token, const RangeDetails& details) noexcept override {
    const std::lock_guard lock(mutex_);
    lines_.push_back("add " + std::to_string(token) + ' ' + std::string(details.implementation));
  }
  void recorded(std::string_view name, uint64_t sequence) noexcept override {
    const std::lock_guard lock(mutex_);
    lines_.push_back("recorded " + std::string(name));
    sequences.push_back(sequence);
  }
  void memory(const void*, int64_t bytes, Device) noexcept override {
    const std::lock_guard lock(mutex_);
    balance += bytes;
    largest = std::max(largest, bytes);
  }

  std::vector<std::string> take_lines() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }
  bool has(const std::string& line) {
    const std::lock_guard lock(mutex_);
    return std::find(lines_.begin(), lines_.end(), line) != lines_.end();
  }

  std::vector<RangeKind> kinds;
  std::vector<uint64_t> sequences;
  int64_t balance = 0;
  int64_t largest = 0;

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
  uint64_t tokens_ = 0;
};

/// Listens until the end of the scope. Listeners are never deleted, as the interface demands.
class Listening {
 public:
  Listening() { set_range_observer(listener_); }
  ~Listening() { set_range_observer(nullptr); }
  Listener* operator->() const { return listener_; }

 private:
  static std::vector<Listener*>& all() {
    static auto* listeners = new std::vector<Listener*>;  // reachable, so that no leak is reported
    return *listeners;
  }
  Listener* listener_ = all().emplace_back(new Listener);
};

}  // namespace

TEST_CASE("ranges record their begin, their details and their end", "[core][record_function]") {
  const Tensor x = zeros({2, 3});
  const Tensor w = zeros({3});
  const Listening listener;
  {
    const RecordFunction outer("my block");
    const RecordOp op("product", x, w);
    op.details([] { return RangeDetails{.implementation = "fast", .flops = 12}; });
    const RecordFunction named("SGD", ".step");
  }
  CHECK(listener->take_lines() == std::vector<std::string>{"begin my block", "begin product [2, 3] [3]",
                                                           "add 2 fast", "begin SGD.step", "end 3", "end 2",
                                                           "end 1"});
  CHECK(listener->kinds == std::vector{RangeKind::user, RangeKind::op, RangeKind::user});
}

TEST_CASE("nobody is asked for details that nobody hears", "[core][record_function]") {
  const RecordOp op("product");
  CHECK_FALSE(op.active());
  op.details([]() -> RangeDetails {
    FAIL("details were asked for");
    return {};
  });
}

TEST_CASE("a range that began before somebody listened is not heard of", "[core][record_function]") {
  std::optional<RecordFunction> range("early");
  const Listening listener;
  range.reset();
  CHECK(listener->take_lines().empty());
}

TEST_CASE("the tape, modules, optimisers and the allocator record themselves",
          "[core][record_function][cpu]") {
  nn::Sequential net(nn::Linear{{.in_features = 3, .out_features = 2}});
  optim::SGD sgd{net.parameters(), {.lr = 0.1}};
  const Tensor x = ones({4, 3});
  const Listening listener;
  {
    const Tensor loss = sum(net(x));
    CHECK(listener->has("begin Sequential [4, 3]"));
    CHECK(listener->has("begin Linear at 0 [4, 3]"));
    CHECK(listener->has("recorded linear"));
    loss.backward();
  }
  CHECK(listener->has("begin linear [4, 2]"));  // the node, with its gradient
  CHECK(listener->sequences.size() >= 2);
  CHECK(std::is_sorted(listener->sequences.begin(), listener->sequences.end()));
  sgd.step();
  CHECK(listener->has("begin SGD.step"));
  sgd.zero_grad();
  CHECK(listener->balance == 0);
  CHECK(listener->largest > 0);
}
