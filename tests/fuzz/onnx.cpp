// ONNX files (onnx/import.h). What is read computes, or says why not.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/core/tensor/create.h"
#include "pleat/onnx/import.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const fuzz::InputAsFile file(data, size);
  std::optional<onnx::ImportedNetwork> net;
  if (!fuzz::accepts([&] { net.emplace(onnx::import_onnx(file.path(), fuzz::limited)); })) return 0;
  fuzz::require(net->inputs().size() < 1000000, "onnx: more inputs than the file has bytes");
  std::vector<Tensor> inputs;
  for (const onnx::TensorInfo& info : net->inputs()) {
    Shape shape;
    int64_t elements = 1;
    for (const std::string& text : info.shape) {
      const bool is_number =
          !text.empty() && text.size() < 4 && text.find_first_not_of("0123456789") == std::string::npos;
      shape.push_back(is_number ? std::stoll(text) : 2);
      elements *= shape.back();
      if (elements > 100000) return 0;
    }
    inputs.push_back(ones(Sizes(shape), info.dtype));
  }
  // The sizes of these are numbers in the file, and as large as it likes.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* grows : {"Expand", "Tile", "OfShape", "Range", "Pad", "Resize", "Upsample", "OneHot",
                            "EyeLike", "Loop", "Col2Im", "Grid", "Conv", "Pool"})
    if (text.find(grows) != std::string_view::npos) return 0;
  (void)fuzz::accepts([&] { (void)(*net)(inputs); });
  return 0;
}
