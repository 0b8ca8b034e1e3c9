// A program that answers requests from several threads: a bounded queue, batches of what waits in it, and one
// engine (docs/inference.md). A batch begins when it is full, or when its first request has waited for --wait
// microseconds. The network has random weights: what is shown is how long an answer takes.
//
// Expected: two lines, requests a second and latencies. Where fewer threads ask than a batch holds, each
// answer takes up to --wait longer.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "options.h"
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/models/make_classifier.h>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model = "resnet20", engine;
  int64_t clients = 4, requests = 2000, max_batch = 8, wait_us = 200, queue = 64;
  std::optional<int64_t> threads;
};

/// Answers requests in a thread of its own.
class Server {
 public:
  Server(Inference engine, const Tensor& example, const Options& options)
      : options_(options), engine_(std::move(engine)) {
    // Plans for all batches before the first request.
    for (int64_t batch = 1; batch <= options.max_batch; ++batch)
      (void)engine_(expand(example, {batch, example.size(1), example.size(2), example.size(3)}));
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// The answer to one image [1, C, H, W]. Waits while the queue is full.
  std::future<Tensor> ask(Tensor image) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return std::ssize(waiting_) < options_.queue; });
    waiting_.push_back({std::move(image), {}, Clock::now()});
    std::future<Tensor> answer = waiting_.back().answer.get_future();
    lock.unlock();
    changed_.notify_all();
    return answer;
  }

  double mean_batch() const {
    return batches_ > 0 ? static_cast<double>(answered_) / static_cast<double>(batches_) : 0;
  }

 private:
  struct Request {
    Tensor image;
    std::promise<Tensor> answer;
    Clock::time_point asked;
  };

  /// What waits, up to a full batch; nothing at the end.
  std::vector<Request> next_batch() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ || !waiting_.empty(); });
    if (waiting_.empty()) return {};
    const auto deadline = waiting_.front().asked + std::chrono::microseconds(options_.wait_us);
    changed_.wait_until(lock, deadline, [&] { return done_ || std::ssize(waiting_) >= options_.max_batch; });
    std::vector<Request> batch;
    while (!waiting_.empty() && std::ssize(batch) < options_.max_batch) {
      batch.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    lock.unlock();
    changed_.notify_all();
    return batch;
  }

  void serve() {
    for (std::vector<Request> batch = next_batch(); !batch.empty(); batch = next_batch()) {
      ++batches_;
      answered_ += std::ssize(batch);
      try {
        std::vector<Tensor> images;
        for (const Request& request : batch) images.push_back(request.image);
        const Tensor answers = engine_(images.size() == 1 ? images[0] : cat(images));
        for (std::size_t i = 0; i < batch.size(); ++i)
          batch[i].answer.set_value(narrow(answers, 0, static_cast<int64_t>(i), 1));
      } catch (...) {  // the clients are told
        for (Request& request : batch) request.answer.set_exception(std::current_exception());
      }
    }
  }

  Options options_;
  Inference engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> waiting_;
  bool done_ = false;
  int64_t batches_ = 0, answered_ = 0;
  std::thread thread_;
};

/// Milliseconds below which this share of the latencies lies.
double percentile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(share * last + 0.5)];
}

void run(const Options& options) {
  if (options.requests < options.clients) throw UsageError("--requests: must be at least --clients");
  if (options.threads) set_num_threads(*options.threads);
  manual_seed(1);
  nn::Sequential net = models::make_classifier(options.model, {.num_classes = 10});
  const Tensor image = randn({1, 3, 32, 32});
  const InferenceOptions plans{.most_plans = options.max_batch};
  Server server(options.engine.empty() ? Inference(net, image, plans) : Inference::load(options.engine),
                image, options);
  std::vector<std::vector<double>> latencies(static_cast<std::size_t>(options.clients));
  const auto begin = Clock::now();
  std::vector<std::thread> clients;
  for (auto& own : latencies)
    clients.emplace_back([&server, &image, &own, count = options.requests / options.clients] {
      for (int64_t i = 0; i < count; ++i) {
        const auto asked = Clock::now();
        (void)server.ask(image).get();
        own.push_back(1e3 * std::chrono::duration<double>(Clock::now() - asked).count());
      }
    });
  for (std::thread& client : clients) client.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::vector<double> all;
  for (const auto& own : latencies) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  print("%s, %lld requests of %lld threads: %.0f a second, %.1f in a batch\n", options.model.c_str(),
        static_cast<long long>(all.size()), static_cast<long long>(options.clients),
        static_cast<double>(all.size()) / seconds, server.mean_batch());
  print("latency: median %.2f ms, 99 %% %.2f ms, 99.9 %% %.2f ms, worst %.2f ms\n", percentile(all, 0.5),
        percentile(all, 0.99), percentile(all, 0.999), all.back());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Answers requests of several threads with one network, in batches.", "serve"};
  Options options;
  app.add_option("--model", options.model, "a network of models/ for pictures of 32 x 32")
      ->check(CLI::IsMember(models::classifier_names()))
      ->capture_default_str();
  app.add_option("--engine", options.engine,
                 "a file of Inference::save, for images like these, in its place");
  const auto number = [&](const char* name, int64_t& value, const char* what, int64_t least, int64_t most) {
    app.add_option(name, value, what)->transform(whole_number(least, most))->capture_default_str();
  };
  number("--clients", options.clients, "threads that ask", 1, 1000);
  number("--requests", options.requests, "of all of them", 1, 100'000'000);
  number("--max-batch", options.max_batch, "requests that are answered together, at most", 1, 1000);
  number("--wait", options.wait_us, "microseconds that a request waits for others", 0, 10'000'000);
  number("--queue", options.queue, "requests that wait, at most", 1, 1'000'000);
  app.add_option("--threads", options.threads, "that compute (all processors)")
      ->transform(whole_number(1, max_num_threads()));
  return run_program(app, argc, argv, [&] { run(options); });
}
