#pragma once

#include <string>

#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/dtype.h"
#include "pleat/core/tensor/shape.h"

/// Values of options, from text and back. What reads throws UsageError, naming the option.

namespace pleat::bench {

/// "float32", "float64", "float16", "bfloat16".
DType parse_dtype(const std::string& text);

/// "contiguous", "channels_last".
MemoryFormat parse_format(const std::string& text);

/// "highest", "high", "medium".
Precision parse_precision(const std::string& text);
std::string text_of_precision(Precision precision);

/// "128": a number from 1 to 2^24.
int64_t parse_count(const std::string& option, const std::string& text);

/// "128,64,32,32" or "128x64x32x32": sizes of at least 1.
Shape parse_sizes(const std::string& option, const std::string& text);

}  // namespace pleat::bench
