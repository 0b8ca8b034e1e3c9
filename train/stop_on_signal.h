#pragma once

#include <string>

namespace pleat::train {

/// While one exists, the first SIGINT (Ctrl-C) or SIGTERM only sets a flag, so that the training can
/// end its step and save a checkpoint; the second ends the process at once. Without it no signal is
/// touched.
///
///   train::StopOnSignal stop;
///   for (const Batch& batch : loader) {
///     ...
///     if (stop.requested()) { checkpoints.save({.step = step}); checkpoints.wait(); break; }
///   }
class StopOnSignal {
 public:
  /// `notice` is written to standard error when the first signal comes; "" for nothing. Throws
  /// ValueError when there is one already.
  explicit StopOnSignal(
      std::string notice = "\nstopping after this step; a second signal ends the program at once\n");
  /// Signals do what they did before. A signal that came is forgotten.
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  bool requested() const { return signal() != 0; }
  /// The number of the signal that came, as SIGINT; 0 for none.
  int signal() const;
};

}  // namespace pleat::train
