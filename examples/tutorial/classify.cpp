// Says what the trained network sees in a picture.
#include <iostream>

#include "shapes.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: classify PICTURE\n";
    return 2;
  }
  ShapeNet net;
  net.load_state_dict(io::read_safetensors("run/weights.safetensors").tensors);
  net.eval();
  const NoGrad off_the_tape;
  const Tensor picture = data::read_picture(argv[1], {.channels = 1, .resize = 32, .crop = 32});
  const Tensor probabilities = softmax(net(prepared(unsqueeze(picture, 0))), 1)[0];
  for (int64_t c = 0; c < 3; ++c) std::cout << name_of(c) << "  " << probabilities[c].item() << '\n';
}
