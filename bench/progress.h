#pragma once

#include <functional>
#include <string>

namespace pleat::bench {

/// For TimerOptions::on_progress: draws a bar with the time left on a terminal's standard error, as long as a
/// copy of the function lives; nothing elsewhere.
std::function<void(double share)> progress_bar(const std::string& label);

}  // namespace pleat::bench
