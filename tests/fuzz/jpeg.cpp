// JPEG pictures.
#include "pleat/tests/fuzz/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  pleat::fuzz::read_picture(data, size);
  return 0;
}
