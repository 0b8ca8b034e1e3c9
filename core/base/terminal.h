#pragma once

#include <string>

/// How wide text may be that people read.

namespace pleat {

/// Columns of the terminal behind a file descriptor, or the fewer that the variable COLUMNS allows; 0 when it
/// is none, and where nothing can be drawn over (TERM is "dumb").
int terminal_width(int descriptor);

/// Columns that a line may take which goes to a file descriptor, at first standard output: of a terminal all
/// but the last, for some go on to the next line there; elsewhere those that the variable COLUMNS names,
/// else 80.
int page_width(int descriptor = 1);

/// A text whose lines take at most `width` columns (0 or less: any), as far as no word is longer. A line that
/// takes more is broken between words, or after a comma of a word that fits no line, and goes on below its
/// second column (what follows two spaces), below the text behind a dash, else below its first word.
std::string wrapped(const std::string& text, int width);

}  // namespace pleat
