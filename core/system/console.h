// Private header: not installed.
#pragma once

#include <ctime>
#include <string_view>

/// The terminal that a person reads and types at, and the clock on the wall. A stream is 1 for standard
/// output, 2 for standard error.

namespace pleat::system {

/// Whether a stream goes to a terminal that draws UTF-8 and the escape sequences of colours and lines.
bool is_terminal(int stream);
/// Its columns; 0 where they are not known.
int terminal_columns(int stream);

/// Writes to standard error; may be called in a handler of signals.
void write_error(std::string_view text);

/// The time where the computer is.
std::tm local_time(std::time_t time);

/// Calls `handler` with SIGINT (Ctrl-C; on Windows also Ctrl-Break) or SIGTERM, again and again. Null:
/// signals do what they did before.
void handle_signals(void (*handler)(int signal));

}  // namespace pleat::system
