#pragma once

#include <string>

#include "pleat/op_cases/op_case.h"

namespace pleat::test {

/// The message of the error with which the ONNX export refuses a row, for one size of its inputs; empty: it
/// is exported.
std::string why_not_exported(const OpCase& c);

}  // namespace pleat::test
