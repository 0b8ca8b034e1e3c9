#pragma once

#include <utility>

#include "pleat/core/base/scope.h"

namespace pleat {

/// Sets options of this thread for a scope, for calls that do not say them:
/// `ConvPolicy guard{{.implementation = "reference"}};` A differentiable call keeps the policy it was made
/// in, whole, for its backward passes and for theirs. One that is open around backward() alone has no effect
/// on calls that were recorded outside of it.
template <class Options>
class Policy {
 public:
  explicit Policy(Options options) : scope_(std::move(options)) {}

  /// Those of the innermost scope; the defaults outside of any.
  static const Options& current() {
    static const Options& defaults = *new Options;
    const Options* innermost = Scoped<Options>::innermost();
    return innermost != nullptr ? *innermost : defaults;
  }

 private:
  Scoped<Options> scope_;
};

}  // namespace pleat
