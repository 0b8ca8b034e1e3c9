// safetensors files. What is read can be written, and reads back bit for bit.
#include "pleat/io/safetensors.h"

#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const fuzz::InputAsFile file(data, size);
  io::SafetensorsContent content;
  if (!fuzz::accepts([&] { content = io::read_safetensors(file.path(), fuzz::limited); })) return 0;
  const auto copy = fuzz::scratch_folder() / "copy.safetensors";
  io::write_safetensors(copy, content.tensors, content.metadata);
  const io::SafetensorsContent again = io::read_safetensors(copy);
  fuzz::require(again.metadata == content.metadata && again.converted.empty() &&
                    again.tensors.size() == content.tensors.size(),
                "safetensors: another file after writing and reading");
  for (const auto& [name, tensor] : content.tensors)
    fuzz::require(fuzz::same_bits(tensor, again.tensors.at(name)),
                  "safetensors: another tensor after writing and reading");
  return 0;
}
