// .npy files. What is read can be written, and reads back bit for bit.
#include "pleat/io/npy.h"

#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const fuzz::InputAsFile file(data, size);
  Tensor array;
  if (!fuzz::accepts([&] { array = io::read_npy(file.path(), fuzz::limited); })) return 0;
  const auto copy = fuzz::scratch_folder() / "copy.npy";
  io::write_npy(copy, array);
  fuzz::require(fuzz::same_bits(array, io::read_npy(copy)), "npy: another array after writing and reading");
  return 0;
}
