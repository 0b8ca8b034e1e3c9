#include "pleat/core/base/host_device.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/conv/implementation.h"

namespace pleat::ops {

// Each in its file; null where this build is without it.
const ConvImplementation* direct_conv();
const ConvImplementation* direct_conv_cuda();
const ConvImplementation* unfold_conv();
const ConvImplementation* winograd_conv();
const ConvImplementation* unfold_conv_cuda();
const ConvImplementation* onednn_conv();
const ConvImplementation* cudnn_conv();
const ConvImplementation* reference_conv();

std::string_view name(ConvPass pass) {
  return pass == ConvPass::forward          ? "forward"
         : pass == ConvPass::backward_input ? "backward_input"
                                            : "backward_weight";
}

const Implementations<ConvImplementation>& all_conv_implementations() {
  static const auto& all = *new Implementations<ConvImplementation>([] {
    std::vector<const ConvImplementation*> list{direct_conv(), winograd_conv(), unfold_conv(), onednn_conv()};
    if constexpr (with_cuda) list.push_back(direct_conv_cuda());
    list.push_back(cudnn_conv());
    if constexpr (with_cuda) list.push_back(unfold_conv_cuda());
    list.push_back(reference_conv());
    return list;
  }());
  return all;
}

std::vector<std::string> conv_implementations(Device device) {
  return all_conv_implementations().names(device);
}

double cost_of_conversion(const ConvProblem& p) {
  if (compute_dtype(p.dtype) == p.dtype) return 0;
  constexpr double of_element = 20;
  return of_element * static_cast<double>(
                          p.batch * (p.in_channels * p.input_pixels() + p.out_channels * p.output_pixels()));
}

}  // namespace pleat::ops
