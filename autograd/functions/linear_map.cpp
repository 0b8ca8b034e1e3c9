#include "pleat/autograd/functions/linear_map.h"

#include "pleat/autograd/tape.h"

namespace pleat {

Tensor linear_map(const std::string& name, const ops::LinearMap& map, const Tensor& x,
                  const ops::LinearMapOptions& options) {
  const Tensor y = ops::apply_linear_map(name.c_str(), map, x, options);
  if (!autograd::anything_to_record({x})) return record(name, y, {});
  // The gradient lies as x does, however small the result was.
  const ops::LinearMapOptions back{.implementation = options.implementation, .format = x.memory_format()};
  return record(name, y, {grad_of(x, [name, back, map = map.transposed()](const Tensor& dy) {
                  return linear_map(name + "_backward", map, dy, back);
                })});
}

}  // namespace pleat
