// Private header: not installed.
#pragma once

#include <tuple>
#include <type_traits>
#include <unordered_map>

#include <dnnl.hpp>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/tensor.h"

/// What the implementations "onednn" share. For oneDNN 2.6 and later, with its OpenMP runtime:
/// https://uxlfoundation.github.io/oneDNN

namespace pleat::ops::onednn {

/// Makes oneDNN plan for, and compute on, as many threads as this library, while it exists. What OpenMP was
/// told before in this thread holds afterwards. Throws DeviceError once the program ends.
class Threads {
 public:
  explicit Threads(const char* op);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// f(), on these threads; what oneDNN reports becomes a DeviceError that begins with `op`.
template <class F>
std::invoke_result_t<F> call(const char* op, const F& f) {
  const Threads threads(op);
  try {
    return f();
  } catch (const dnnl::error& error) {
    fail<DeviceError>("{}: oneDNN {}.{}: {}; name another implementation", op, dnnl::version()->major,
                      dnnl::version()->minor, error.what());
  }
}

const dnnl::engine& cpu();

/// How oneDNN computes a primitive P of these arguments. `hint` describes the forward pass, for a backward
/// one. Temporary memory comes from the caller.
template <class P, class... Arguments, class... Hint>
typename P::primitive_desc describe(const std::tuple<Arguments...>& arguments, const Hint&... hint) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return std::apply(
      [&](const auto&... one) {
#if DNNL_VERSION_MAJOR >= 3
        return typename P::primitive_desc(cpu(), one..., hint..., attributes);
#else
        return typename P::primitive_desc(typename P::desc(one...), attributes, cpu(), hint...);
#endif
      },
      arguments);
}

/// The elements of a dense tensor, which lie as `desc` says.
dnnl::memory memory(const dnnl::memory::desc& desc, const Tensor& tensor);

/// `source` in the order of `desc`; itself where that is its own.
dnnl::memory reordered(const dnnl::memory& source, const dnnl::memory::desc& desc);

/// Memory for a result in the order of `desc`: that of `result` where that is its own. To be copied there by
/// `copy` afterwards.
dnnl::memory like(const dnnl::memory& result, const dnnl::memory::desc& desc);
void copy(const dnnl::memory& from, const dnnl::memory& to);

/// Computes P, its temporary memory beside.
template <class P>
void execute(const typename P::primitive_desc& description, std::unordered_map<int, dnnl::memory> arguments) {
  arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(description.scratchpad_desc(), cpu()));
  dnnl::stream stream(cpu());
  P(description).execute(stream, arguments);
  stream.wait();
}

}  // namespace pleat::ops::onednn
