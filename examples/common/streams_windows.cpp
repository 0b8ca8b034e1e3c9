#include <cstdio>

#include "program.h"
#include <fcntl.h>
#include <io.h>
#include <pleat/core/base/error.h>
#include <pleat/core/base/terminal.h>

void check_standard_streams() {
  // Files and pipes get the same bytes as on other systems, and consoles are told that they get UTF-8.
  for (std::FILE* stream : {stdout, stderr}) {
    if (::_fileno(stream) < 0) {
      if (stream == stdout) throw pleat::FileError("standard output is closed; send it to a file, or to NUL");
      continue;
    }
    ::_setmode(::_fileno(stream), _O_BINARY);
    pleat::terminal_width(::_fileno(stream));
  }
}
