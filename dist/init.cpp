#include "pleat/dist/init.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <typeinfo>

#include <cxxabi.h>

#include "pleat/core/base/format.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/dist/engine.h"
#include "pleat/dist/launcher.h"

namespace pleat::dist {
namespace {

/// The job, from the first dist::init() on.
struct Job {
  std::mutex mutex;
  std::optional<InitOptions> options;
  std::shared_ptr<Engine> engine;  ///< null: one process alone
};

Job& job() {
  static Job* const only = new Job;  // exists until the process is gone
  return *only;
}

std::string present_exception() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> name(
        abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status), std::free);
    return fmt::format("{}: {}", status == 0 ? name.get() : "exception", error.what());
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

/// An exception that is not caught ends the job, not only this process.
[[noreturn]] void terminate_job() {
  const Engine& engine = *job().engine;
  const std::string why =
      std::current_exception() ? present_exception() : "std::terminate was called without an exception";
  std::fprintf(stderr, "rank %d of %d: %s\n", engine.rank(), engine.size(), why.c_str());
  job().engine->end_job(why);
}

/// The processes of a machine share its cores, unless the number of threads of each was set.
void share_cores(const Engine& engine) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (std::getenv("PLEAT_THREADS") != nullptr || num_threads() * engine.local_size() <= cores) return;
  set_num_threads(std::max(1, cores / engine.local_size()));
}

void leave_job() { job().engine->end_program(); }

}  // namespace

Communicator init(InitOptions options) {
  check<ValueError>(options.timeout_seconds > 0, "dist::init: timeout_seconds must be above 0, got {}",
                    options.timeout_seconds);
  Job& only = job();
  const std::lock_guard lock(only.mutex);
  if (only.options) {
    check<ValueError>(only.options->timeout_seconds == options.timeout_seconds,
                      "dist::init: was called before with other options; call it once, at the beginning");
  } else {
    if (launched_processes() > 0) {
      only.engine = std::make_shared<Engine>(options);
      share_cores(*only.engine);
      set_random_stream(static_cast<uint64_t>(only.engine->rank()));
      std::set_terminate(terminate_job);
      std::atexit(leave_job);
    }
    only.options = options;
  }
  return EngineAccess::communicator(only.engine);
}

}  // namespace pleat::dist
