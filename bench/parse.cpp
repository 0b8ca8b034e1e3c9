#include "pleat/bench/parse.h"

#include <vector>

#include "pleat/bench/usage_error.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {

DType parse_dtype(const std::string& text) {
  for (const DType dtype : {float32, float64, float16, bfloat16})
    if (text == name(dtype)) return dtype;
  fail<UsageError>("--dtype: must be float32, float64, float16 or bfloat16, got \"{}\"", text);
}

MemoryFormat parse_format(const std::string& text) {
  for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last})
    if (text == name(format)) return format;
  fail<UsageError>("--format: must be contiguous or channels_last, got \"{}\"", text);
}

Precision parse_precision(const std::string& text) {
  for (const Precision precision : {Precision::highest, Precision::high, Precision::medium})
    if (text == text_of_precision(precision)) return precision;
  fail<UsageError>("--precision: must be highest, high or medium, got \"{}\"", text);
}

std::string text_of_precision(Precision precision) {
  return precision == Precision::highest ? "highest" : precision == Precision::high ? "high" : "medium";
}

int64_t parse_count(const std::string& option, const std::string& text) {
  constexpr int64_t most = int64_t{1} << 24;
  const auto count = parse_number<int64_t>(text);
  check<UsageError>(count && *count >= 1 && *count <= most,
                    "{}: must be a whole number from 1 to {}, got \"{}\"", option, most, text);
  return *count;
}

Shape parse_sizes(const std::string& option, const std::string& text) {
  const auto wrong = [&] {
    fail<UsageError>("{}: must be sizes of at least 1, as in 128,64,32,32, got \"{}\"", option, text);
  };
  std::vector<int64_t> sizes;
  std::string digits;
  for (const char c : text + ",") {
    if (c >= '0' && c <= '9') {
      digits += c;
    } else if (c == ',' || c == 'x') {
      // Sizes that no memory holds are told apart from typing errors later, by whoever multiplies them.
      if (digits.empty() || digits.size() > 12 || std::stoll(digits) < 1) wrong();
      sizes.push_back(std::stoll(digits));
      digits.clear();
    } else {
      wrong();
    }
  }
  return Shape(sizes);
}

}  // namespace pleat::bench
