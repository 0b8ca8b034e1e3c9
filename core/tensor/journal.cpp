#include "pleat/core/tensor/journal.h"

#include <algorithm>
#include <utility>

#include "pleat/core/tensor/copy.h"

namespace pleat {
namespace {

thread_local Journal* innermost = nullptr;

Tensor bytes_of(const std::shared_ptr<Storage>& storage) {
  return make_tensor(storage, {storage->size}, {1}, 0, uint8);
}

}  // namespace

Journal::Journal() : since_(next_version()), outer_(innermost) { innermost = this; }

void Journal::stop() {
  if (std::exchange(notes_, false)) innermost = outer_;
}

bool Journal::has_elements_of(const Tensor& tensor) const {
  return std::ranges::any_of(elements_,
                             [&](const Elements& e) { return e.storage == tensor.impl().storage; });
}

void Journal::note(const std::shared_ptr<Storage>& storage) {
  for (Journal* journal = innermost; journal != nullptr; journal = journal->outer_)
    if (storage->version < journal->since_) journal->note_elements(storage);
}

void Journal::note_elements(const std::shared_ptr<Storage>& storage) {
  elements_.push_back(
      {storage, ops::copy(bytes_of(storage)), storage->version, storage->taped_at, storage->taped_by});
}

void Journal::note(std::span<uint64_t> counters) {
  for (Journal* journal = innermost; journal != nullptr; journal = journal->outer_)
    journal->note_counters(counters);
}

void Journal::note_counters(std::span<uint64_t> counters) {
  const auto are_these = [&](const Counters& noted) { return noted.are(counters); };
  if (std::ranges::any_of(counters_, are_these)) return;
  counters_.push_back({counters, {counters.begin(), counters.end()}});
  const auto then = std::ranges::find_if(to_begin_with_, are_these);
  if (then != to_begin_with_.end()) std::ranges::copy(then->were, counters.begin());
}

void Journal::forget(std::span<const uint64_t> counters) {
  for (Journal* journal = innermost; journal != nullptr; journal = journal->outer_)
    std::erase_if(journal->counters_, [&](const Counters& noted) { return noted.are(counters); });
}

void Journal::begin_as(const Journal& then) {
  to_begin_with_ = then.counters_;
  for (auto e = then.elements_.rbegin(); e != then.elements_.rend(); ++e)
    ops::copy_into(bytes_of(e->storage), e->were);
}

void Journal::undo() {
  stop();
  for (auto e = elements_.rbegin(); e != elements_.rend(); ++e) {
    ops::copy_into(bytes_of(e->storage), e->were);
    e->storage->version = e->version;
    e->storage->taped_at = e->taped_at;
    e->storage->taped_by = e->taped_by;
  }
  for (const Counters& noted : counters_) std::ranges::copy(noted.were, noted.counters.begin());
}

}  // namespace pleat
