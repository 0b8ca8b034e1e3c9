#include "pleat/core/base/record_function.h"

namespace pleat {
namespace {

RangeObserver* observer() { return detail::range_observer.load(std::memory_order_acquire); }

}  // namespace

void set_range_observer(RangeObserver* observer) {
  detail::range_observer.store(observer, std::memory_order_release);
}

namespace detail {

void Range::begin(const RangeStart& start) {
  if (RangeObserver* listener = observer()) token_ = listener->begin(start);
}

void Range::end() {
  if (RangeObserver* listener = observer()) listener->end(token_);
}

void Range::add(const RangeDetails& details) const {
  RangeObserver* listener = observer();
  if (listener != nullptr && token_ != 0) listener->add(token_, details);
}

}  // namespace detail

void record_node(std::string_view name, uint64_t sequence) {
  if (RangeObserver* listener = observer()) listener->recorded(name, sequence);
}

void record_memory(const void* address, int64_t bytes, Device device) {
  if (RangeObserver* listener = observer()) listener->memory(address, bytes, device);
}

}  // namespace pleat
