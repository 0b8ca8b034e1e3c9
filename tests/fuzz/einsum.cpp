// Equations of einsum. The first line is the equation; what follows says how large each letter's dimension
// is.
#include <algorithm>
#include <array>

#include "pleat/core/tensor/create.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text_of(data, size);
  const std::string equation = text.substr(0, text.find('\n'));
  const std::string rest = text.substr(std::min(text.size(), equation.size() + 1));
  if (equation.size() > 60) return 0;
  // Operands that fit the letters before the arrow; some dimensions do not fit, as `rest` says.
  std::vector<Tensor> operands;
  Shape shape;
  int64_t elements = 1;
  // With a letter in each place, the result could have as many elements as all operands multiplied.
  int64_t all = 1;
  std::size_t used = 0;
  for (const char c : equation.substr(0, equation.find('>')) + ",") {
    if (c == ',') {
      operands.push_back(ones(shape));
      shape.clear();
      all *= std::max<int64_t>(elements, 1);
      elements = 1;
      if (all > 100'000) return 0;
    } else if (c != ' ' && c != '-') {
      const int odd = used < rest.size() ? rest[used++] : 0;
      shape.push_back(odd % 16 == 15 ? odd % 5 : 1 + static_cast<unsigned char>(c) % 3);
      elements *= shape.back();
    }
    if (elements > 1000 || shape.size() > 10) return 0;
  }
  if (operands.size() > 6) return 0;
  fuzz::accepts([&] {
    const Tensor result = einsum(equation, operands);
    fuzz::require(result.dtype() == float32, "einsum: another type");
    // Sums of ones are whole.
    for (const float value : result.to_vector<float>())
      fuzz::require(value >= 0 && value == static_cast<float>(static_cast<int64_t>(value)),
                    "einsum: a sum of ones is not whole");
  });
  return 0;
}
