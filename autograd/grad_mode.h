#pragma once

namespace pleat {

namespace detail {
/// later: off, in the first run of a function that checkpoint() will run again, on the tape.
enum class Recording : unsigned char { off, on, later };
/// Of this thread.
Recording& recording();
}  // namespace detail

/// Whether functions called by this thread are recorded on the tape. True at the start.
bool grad_enabled();

/// Sets it for a scope: `NoGrad guard;` around evaluation or an optimiser's step.
class GradMode {
 public:
  explicit GradMode(bool enabled) : GradMode(enabled ? detail::Recording::on : detail::Recording::off) {}
  explicit GradMode(detail::Recording mode);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  detail::Recording previous_;
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
