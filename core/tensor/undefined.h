// Private header: not installed.
#pragma once

#include <string>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// An undefined Tensor with the reason why there is none: the text of the Error when it is used.
Tensor undefined_because(std::string reason);

}  // namespace pleat
