#include <atomic>

#include <omp.h>

#include "pleat/core/base/fork.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/ops/onednn/onednn.h"

namespace pleat::ops::onednn {
namespace {

std::atomic<bool> program_ends = false;

/// oneDNN destroys its static objects when the program ends, in an order that only it knows.
struct End {
  ~End() {
    if (system::is_main_thread()) program_ends = true;
  }
};

}  // namespace

Threads::Threads(const char* op) : before_(omp_get_max_threads()) {
  // In a child of fork(), GCC's OpenMP waits for ever for the threads that stayed in the parent.
  static const ProcessMark first_use;
  thread_local const End end;  // the main thread's comes before that of any static object
  check<DeviceError>(
      !program_ends,
      "{}: oneDNN cannot be called any more when the program ends; name another implementation", op);
  omp_set_num_threads(first_use.is_here() ? num_threads() : 1);
}
Threads::~Threads() {
  static const End end;  // comes before that of what this first call has made
  omp_set_num_threads(before_);
}

const dnnl::engine& cpu() {
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory memory(const dnnl::memory::desc& desc, const Tensor& tensor) {
  return {desc, cpu(), tensor.raw()};
}

dnnl::memory like(const dnnl::memory& result, const dnnl::memory::desc& desc) {
  return result.get_desc() == desc ? result : dnnl::memory(desc, cpu());
}

void copy(const dnnl::memory& from, const dnnl::memory& to) {
  if (from == to) return;
  dnnl::stream stream(cpu());
  dnnl::memory source = from, result = to;  // execute() takes them so, though it changes neither handle
  dnnl::reorder(source, result).execute(stream, source, result);
  stream.wait();
}

dnnl::memory reordered(const dnnl::memory& source, const dnnl::memory::desc& desc) {
  const dnnl::memory result = like(source, desc);
  copy(source, result);
  return result;
}

}  // namespace pleat::ops::onednn
