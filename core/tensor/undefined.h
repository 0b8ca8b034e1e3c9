// Private header: not installed.
#pragma once

#include <string>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// An undefined Tensor that says, as the text of the Error when it is used, why there is none.
Tensor undefined_because(std::string reason);

}  // namespace pleat
