#include "pleat/dist/engine.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/device/cuda.h"

namespace pleat::dist {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// How long a rank that failed gives the others to learn of it.
constexpr seconds failure_timeout{5};
/// How long a rank that asks where the others are waits for answers.
constexpr seconds answer_timeout{2};
/// How long a rank at its end waits for the messages of the others before it stops them.
constexpr seconds abort_delay{1};
/// Of what ranks tell each other of their calls.
constexpr std::size_t text_bytes = 1024;

/// FNV-1a (Fowler, Noll and Vo, 1991).
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// "rank 3", "ranks 0, 2-7".
std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text += (last > i + 1 ? "-" : ", ") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string_view plural(int64_t number) { return number == 1 ? "" : "s"; }

}  // namespace

Engine::Engine(InitOptions options) : options_(options) {
  std::promise<void> connected;
  std::future<void> result = connected.get_future();
  thread_ = std::thread([this, &connected] { work(connected); });
  try {
    result.get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

Engine::~Engine() {
  if (thread_.joinable()) thread_.join();
}

std::shared_future<void> Engine::submit(std::string what, Move move) {
  return push(Kind::call, std::move(what), std::move(move));
}

std::shared_future<void> Engine::submit_transfer(std::string what, Move begin) {
  return push(Kind::transfer, std::move(what), std::move(begin));
}

std::shared_future<void> Engine::push(Kind kind, std::string what, Move move) {
  Task task{.kind = kind, .what = std::move(what), .move = std::move(move), .done = {}};
  std::shared_future<void> done = task.done.get_future();
  const std::lock_guard lock(mutex_);
  if (closed_) {
    task.done.set_exception(std::make_exception_ptr(DistError("dist: the job has ended on this rank")));
    return done;
  }
  closed_ = kind == Kind::failure || kind == Kind::end;
  tasks_.push_back(std::move(task));
  task_given_.notify_one();
  return done;
}

void Engine::wait(const std::shared_future<void>& call) const {
  while (call.wait_for(milliseconds(500)) != std::future_status::ready) {
    const int64_t since = moving_since_;
    if (since == 0 ||
        Clock::now().time_since_epoch() - Clock::duration(since) < duration<double>(options_.timeout_seconds))
      continue;
    stuck_ = true;
    fail<DistError>(
        "dist: all ranks have come to a call, and its data have not moved for {} seconds: a process was "
        "stopped, or the network is down",
        options_.timeout_seconds);
  }
  call.get();
}

void Engine::work(std::promise<void>& connected) {
  try {
    transport_ = connect();
    rank_ = transport_->rank();
    size_ = transport_->size();
    local_rank_ = transport_->local_rank();
    local_size_ = transport_->local_size();
    version_ = transport_->version();
    find_gpus();
  } catch (...) {
    connected.set_exception(std::current_exception());
    return;
  }
  connected.set_value();
  for (bool open = true; open;) {
    std::unique_lock lock(mutex_);
    while (!task_given_.wait_for(lock, milliseconds(50), [&] { return !tasks_.empty(); })) {
      lock.unlock();
      answer_messages(false);
      check_gpus();
      lock.lock();
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    open = task.kind == Kind::call || task.kind == Kind::transfer;
    try {
      run(task);
      task.done.set_value();
    } catch (...) {
      task.done.set_exception(std::current_exception());
    }
  }
}

void Engine::find_gpus() {
  if (cuda::device_count() > 0) device_ = {DeviceType::cuda, local_rank_ % cuda::device_count()};
  constexpr std::size_t longest = 64;
  std::array<char, longest> own{};
  if (device_.is_cuda() && !nccl_version().empty())
    cuda::properties(device_).uuid.copy(own.data(), own.size() - 1);
  std::vector<char> all(longest * static_cast<std::size_t>(size_));
  transport_->all_gather(reinterpret_cast<const std::byte*>(own.data()),
                         reinterpret_cast<std::byte*>(all.data()), std::ssize(own));
  std::set<std::string> gpus;
  for (int rank = 0; rank < size_; ++rank) gpus.insert(&all[longest * static_cast<std::size_t>(rank)]);
  has_nccl_ = !gpus.contains("") && std::ssize(gpus) == size_;
  if (has_nccl_)
    version_ += ", " + nccl_version();
  else if (device_.is_cuda())
    version_ += gpus.contains("") ? ", GPUs through the CPU: a rank has no GPU or no NCCL"
                                  : ", GPUs through the CPU: ranks share a GPU";
}

GpuCollectives& Engine::gpus() {
  if (!gpus_) gpus_ = connect_gpus(*transport_, device_);
  return *gpus_;
}

bool Engine::check_gpus() {
  if (!gpus_) return true;
  try {
    return gpus_->is_done(options_.timeout_seconds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d of %d: %s; %s\n", rank_, size_, error.what(),
                 state_of_other_ranks().c_str());
    transport_->abort(1);
    return false;
  }
}

void Engine::run(Task& task) {
  const bool was_broken = !broken_.empty();
  try {
    check<DistError>(!was_broken, "{}", broken_);
    if (task.kind == Kind::transfer) {
      task.move(*transport_);
      return poll([&] { return transport_->receive_is_done(); }, task.what);
    }
    ++call_;
    agree(task.kind, task.what);
    if (task.kind == Kind::end) return finish();
    moving_since_ = Clock::now().time_since_epoch().count();
    task.move(*transport_);
    moving_since_ = 0;
  } catch (const std::exception& error) {
    moving_since_ = 0;
    if (broken_.empty()) broken_ = error.what();
    if (task.kind == Kind::call || task.kind == Kind::transfer) throw;
    if (task.kind == Kind::end && !was_broken)
      std::fprintf(stderr, "rank %d of %d, at its end: %s\n", rank_, size_, error.what());
    std::this_thread::sleep_for(abort_delay);
    transport_->abort(1);
  }
}

void Engine::finish() {
  const auto start = Clock::now();
  while (!transport_->sends_are_done()) {
    check<DistError>(Clock::now() - start < answer_timeout,
                     "dist: a tensor that this rank has sent was not received by the other before its end");
    std::this_thread::yield();
  }
  while (!check_gpus()) std::this_thread::sleep_for(milliseconds(1));
  if (gpus_) gpus_->finish();
  transport_->finish();
}

void Engine::agree(Kind kind, const std::string& what) {
  const RecordFunction range("dist.agree");
  std::string own = what;
  // No two ranks fail alike, so that all learn of it.
  if (kind == Kind::failure) own = fmt::format("rank {} failed: {}", rank_, what);
  if (kind == Kind::end) own = "has left the program";
  const uint64_t hash = kind == Kind::end ? hash_of(own) : hash_of(own) + static_cast<uint64_t>(call_);
  // The smallest of both is that of this rank on all of them only where all have the same.
  std::array<uint64_t, 2> values{hash, ~hash};
  transport_->begin_min(values);
  poll([&] { return transport_->min_is_done(); }, own);
  if (values[0] == hash && values[1] == ~hash) return;
  fail<DistError>("{}", differing_calls(kind, own));
}

std::string Engine::differing_calls(Kind kind, const std::string& own) {
  std::array<char, text_bytes> text{};
  text[0] = kind == Kind::failure ? '!' : ' ';
  own.copy(text.data() + 1, text.size() - 2);
  std::vector<char> all(text.size() * static_cast<std::size_t>(size_));
  transport_->all_gather(reinterpret_cast<const std::byte*>(text.data()),
                         reinterpret_cast<std::byte*>(all.data()), std::ssize(text));
  std::map<std::string, std::vector<int>> ranks_of;
  std::string failures;
  for (int rank = 0; rank < size_; ++rank) {
    const char* const its = all.data() + static_cast<std::size_t>(rank) * text.size();
    if (*its == '!') failures += fmt::format("{}{}", failures.empty() ? "dist: " : "\n  ", its + 1);
    ranks_of[its + 1].push_back(rank);
  }
  if (!failures.empty()) return failures;
  std::string message = fmt::format("dist: the ranks do not make the same call, as their number {}:", call_);
  for (const auto& [call, ranks] : ranks_of) message += fmt::format("\n  {}: {}", ranks_text(ranks), call);
  return message +
         "\nAll ranks must make the same calls in the same order: look for a loop with another number of "
         "batches, or for a branch that only some of them take";
}

template <class F>
void Engine::poll(const F& is_done, const std::string& what) {
  const auto start = Clock::now();
  for (int64_t asked = 0; !is_done(); ++asked) {
    if (asked < 500) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (asked % 64 != 0) continue;
    answer_messages(true);
    check_gpus();
    if (abort_now_) transport_->abort(1);
    if (Clock::now() - start > duration<double>(options_.timeout_seconds))
      fail<DistError>("dist: {}: waited {} seconds for the other ranks: {}", what, options_.timeout_seconds,
                      state_of_other_ranks());
  }
}

void Engine::answer_messages(bool waiting, std::map<int, Transport::Message>* answers) {
  transport_->sends_are_done();  // so that they go on
  while (const auto message = transport_->receive_message()) {
    if (message->second.is_answer == 0)
      transport_->send_message(message->first,
                               {.is_answer = 1, .is_waiting = waiting ? 1 : 0, .call = call_});
    else if (answers != nullptr)
      (*answers)[message->first] = message->second;
  }
}

std::string Engine::state_of_other_ranks() {
  std::map<int, Transport::Message> answers;
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_) transport_->send_message(rank, {});
  const auto start = Clock::now();
  while (std::ssize(answers) < size_ - 1 && Clock::now() - start < answer_timeout) {
    answer_messages(true, &answers);
    std::this_thread::sleep_for(milliseconds(1));
  }
  std::map<std::string, std::vector<int>> ranks_of;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const auto found = answers.find(rank);
    if (found == answers.end())
      ranks_of["no answer: stopped, or its machine is down"].push_back(rank);
    else if (found->second.is_waiting != 0)
      ranks_of[fmt::format("waiting, too, in call {}", found->second.call)].push_back(rank);
    else
      ranks_of[fmt::format("busy elsewhere since {} call{}", found->second.call, plural(found->second.call))]
          .push_back(rank);
  }
  std::string text = fmt::format("this is call {};", call_);
  for (const auto& [state, ranks] : ranks_of) text += fmt::format("\n  {}: {}", ranks_text(ranks), state);
  return text + "\nInitOptions::timeout_seconds is how long a rank waits";
}

void Engine::end_job(const std::string& why) noexcept {
  try {
    std::shared_future<void> told = push(Kind::failure, why, {});
    if (!stuck_) told.wait_for(failure_timeout + abort_delay);
    abort_now_ = true;
    if (!stuck_) std::this_thread::sleep_for(abort_delay);
  } catch (...) {
  }
  std::_Exit(1);
}

void Engine::end_program() noexcept {
  try {
    std::shared_future<void> end = push(Kind::end, "", {});
    if (!stuck_) return wait(end);
  } catch (...) {
  }
  std::_Exit(1);
}

}  // namespace pleat::dist
