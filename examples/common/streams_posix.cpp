#include <cerrno>
#include <csignal>

#include "program.h"
#include <fcntl.h>
#include <pleat/core/base/error.h>
#include <unistd.h>

void check_standard_streams() {
  // Output that goes nowhere is an error, with a message and without remains of files: its reader is gone, or
  // the file that it goes to is as long as it may be (ulimit -f).
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one's.
    if (::open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0) continue;
    if (stream == STDOUT_FILENO)
      throw pleat::FileError("standard output is closed; send it to a file, or to /dev/null");
  }
}
