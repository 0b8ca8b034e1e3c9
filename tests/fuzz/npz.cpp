// .npz archives: one array at a time gives what all of them at once give.
#include "pleat/io/npz.h"

#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const fuzz::InputAsFile file(data, size);
  std::map<std::string, Tensor> all;
  const bool whole = fuzz::accepts([&] { all = io::read_npz(file.path(), fuzz::limited); });
  fuzz::accepts([&] {
    const io::NpzReader reader(file.path(), fuzz::limited);
    for (const std::string& name : reader.names()) {
      fuzz::require(reader.contains(name), "npz: a name that is not there");
      Tensor array;
      const bool one = fuzz::accepts([&] { array = reader.read(name); });
      if (whole) fuzz::require(one && fuzz::same_bits(array, all.at(name)), "npz: read alone it is another");
    }
  });
  return 0;
}
