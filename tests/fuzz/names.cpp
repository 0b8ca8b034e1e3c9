// Names that users type: devices, padding modes, implementations, nonlinearities. The first byte says which.
#include <string>

#include "pleat/core/tensor/create.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/init.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/norm/batch_norm.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text = fuzz::text_of(data + 1, size - 1);
  const Tensor x = ones({1, 2, 3, 3}), w = ones({2, 2, 3, 3});
  fuzz::accepts([&] {
    switch (data[0] % 6) {
      case 0: {
        const Device device(text);
        fuzz::require(Device(name(device)) == device, "device: its name is another device");
        break;
      }
      case 1:
        conv2d(x, w, {}, {.padding = text});
        break;
      case 2:
        conv2d(x, w, {}, {.padding = 1, .implementation = text});
        break;
      case 3: {
        nn::Conv2d conv{
            {.in_channels = 2, .out_channels = 2, .kernel_size = 3, .padding = 1, .padding_mode = text}};
        conv(x);
        break;
      }
      case 4: {
        const BatchNormPolicy policy{{.implementation = text}};
        break;
      }
      default:
        fuzz::require(nn::init::calculate_gain(text) > 0, "gain: not positive");
    }
  });
  return 0;
}
