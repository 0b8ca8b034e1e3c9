#pragma once

namespace pleat {

/// Whether functions called by this thread are recorded on the tape. True at the start.
bool grad_enabled();

/// Sets it for a scope: `NoGrad guard;` around evaluation or an optimiser's step.
class GradMode {
 public:
  explicit GradMode(bool enabled);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};

class NoGrad : GradMode {
 public:
  NoGrad() : GradMode(false) {}
};

class EnableGrad : GradMode {
 public:
  EnableGrad() : GradMode(true) {}
};

/// Runs `f` without recording and returns its result.
template <class F>
decltype(auto) no_grad(F&& f) {
  const NoGrad guard;
  return f();
}

}  // namespace pleat
