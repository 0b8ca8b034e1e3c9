#include <omp.h>

#include "pleat/core/parallel/parallel.h"
#include "pleat/ops/onednn/onednn.h"

namespace pleat::ops::onednn {

Threads::Threads() : before_(omp_get_max_threads()) { omp_set_num_threads(num_threads()); }
Threads::~Threads() { omp_set_num_threads(before_); }

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
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
