// Fails on every input whose first byte is not 'a', so that the driver can be seen to notice
// (selftest.cmake).
#include <cstddef>
#include <cstdint>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size > 0 && data[0] != 'a') throw std::runtime_error("not an a");
  return 0;
}
