// POSIX: Windows has no permissions, pipes and devices in folders, descriptors by name or limits on files
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pleat/core/base/error.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;

namespace {

std::ptrdiff_t files_in(const TemporaryDirectory& directory) {
  return std::distance(std::filesystem::directory_iterator(directory.path()), {});
}

}  // namespace

TEST_CASE("an atomic file keeps permissions and follows links", "[core]") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "elsewhere");
  const auto target = directory / "elsewhere" / "x";
  const unsigned char old[] = {'o'};
  write_bytes(target, old);
  std::filesystem::permissions(target, std::filesystem::perms(0640));
  std::filesystem::create_symlink(target, directory / "link");

  AtomicFile file("test", directory / "link");
  file.write("new");
  file.commit();
  CHECK(read_text(target) == "new");
  CHECK(std::filesystem::is_symlink(directory / "link"));
  CHECK(std::filesystem::status(target).permissions() == std::filesystem::perms(0640));
}

TEST_CASE("an atomic file follows links to where nothing is yet", "[core]") {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  fs::create_directories(directory / "a" / "b");
  fs::create_directory(directory / "real");
  fs::create_directory_symlink("real", directory / "folder");
  const auto link = [&](const fs::path& target, const char* name) {
    fs::create_symlink(target, directory / name);
    return directory / name;
  };
  struct Case {
    fs::path link, target;
  };
  const std::vector<Case> cases{
      {link(directory / "a" / "absolute", "l1"), directory / "a" / "absolute"},
      {link("a/b/../relative", "l2"), directory / "a" / "relative"},
      {link("l4", "l3"), directory / "chain"},  // the next one is made below
      {link("./chain", "l4"), directory / "chain"},
      {link("folder/x", "l5"), directory / "real" / "x"},
      {directory / "folder" / "up", directory / "up"},
  };
  fs::create_symlink("../up", directory / "real" / "up");
  for (const auto& [from, to] : cases)
    for (const char* text : {"first", "second"}) {
      INFO(from);
      AtomicFile::check_writable("test", from);
      write_file("test", from, text);
      CHECK(fs::is_symlink(from));
      CHECK(fs::is_regular_file(fs::symlink_status(to)));
      CHECK(read_text(to) == text);
    }
  // Of the working folder.
  const fs::path before = fs::current_path();
  fs::current_path(directory.path());
  link("here", "l6");
  write_file("test", "l6", "x");
  fs::current_path(before);
  CHECK(read_text(directory / "here") == "x");

  const fs::path nowhere = link("none/x", "l7");
  CHECK_THROWS_WITH(write_file("test", nowhere, "x"), "test: cannot write '" +
                                                          (directory / "none/x").string() +
                                                          "': No such file or directory; make the folder '" +
                                                          (directory / "none").string() + "' first");
  for (const auto& [name, target] : {std::pair("l8", "l9"), {"l9", "l8"}, {"self", "self"}})
    link(target, name);
  for (const char* circle : {"l8", "l9", "self"})
    CHECK_THROWS_WITH(write_file("test", directory / circle, "x"),
                      Catch::Matchers::Contains("cannot follow the link '" + (directory / circle).string() +
                                                "': Too many levels of symbolic links"));
  CHECK_THROWS_WITH(write_file("test", link(directory / "a", "l10"), "x"),
                    Catch::Matchers::Contains("is a folder, not a regular file"));
  const int log = ::open((directory / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(log >= 0);
  write_file("test", link("/dev/fd/" + std::to_string(log), "l11"), "through a descriptor");
  ::close(log);
  CHECK(read_text(directory / "log") == "through a descriptor");
}

TEST_CASE("a limit on the size of files is an error, and what was there stays", "[core]") {
  const TemporaryDirectory directory;
  write_file("test", directory / "x", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{4096, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::string message;
    try {
      write_file("test", directory / "x", std::string(10'000, 'x'));
    } catch (const FileError& error) {
      message = error.what();
    }
    const bool said = message == "test: cannot write '" + (directory / "x").string() +
                                     "': File too large; this process may write 4.0 KiB a file: raise the "
                                     "limit (ulimit -f)";
    // The signal does what it did before.
    struct sigaction action {};
    ::sigaction(SIGXFSZ, nullptr, &action);
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    const bool as_before = action.sa_handler == SIG_DFL && sigismember(&blocked, SIGXFSZ) == 0;
    write_file("test", directory / "y", "small");
    ::_exit(said && as_before ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(read_text(directory / "x") == "old");
  CHECK(read_text(directory / "y") == "small");
  CHECK(files_in(directory) == 2);
}

TEST_CASE("an atomic file writes to pipes and devices, and replaces none", "[core]") {
  const TemporaryDirectory directory;
  const auto pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  // Nobody reads: it must not wait.
  CHECK_THROWS_WITH(AtomicFile("test", pipe),
                    "test: '" + pipe.string() + "' is a pipe that nobody reads from; start its reader first");
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  AtomicFile::check_writable("test", pipe);
  {
    AtomicFile file("test", pipe);
    file.write("through a pipe");
    file.commit();
  }
  char text[32] = {};
  CHECK(::read(reader, text, sizeof text) == 14);
  CHECK(std::string(text) == "through a pipe");
  AtomicFile left("test", pipe);
  ::close(reader);
  // Without a signal that ends the process.
  CHECK_THROWS_WITH(left.write("x"), "test: cannot write '" + pipe.string() + "': Broken pipe");
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(files_in(directory) == 1);

  write_file("test", "/dev/null", "x");
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK_THROWS_WITH(write_file("test", "/dev/full", "x"),
                    "test: cannot write '/dev/full': No space left on device");
  CHECK_THROWS_WITH(AtomicFile("test", "/dev/fd/987"),
                    "test: cannot write '/dev/fd/987': Bad file descriptor");
}

TEST_CASE("a name of an open file is written to where it stands", "[core]") {
  const TemporaryDirectory directory;
  const auto path = directory / "log";
  const int log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(log >= 0);
  REQUIRE(::write(log, "before ", 7) == 7);
  for (const std::string folder : {"/dev/fd/", "/proc/self/fd/"})
    write_file("test", folder + std::to_string(log), "+");
  REQUIRE(::write(log, " after", 6) == 6);
  ::close(log);
  CHECK(read_text(path) == "before ++ after");
}

TEST_CASE("what killed processes left behind is removed, and nothing else", "[core]") {
  const TemporaryDirectory directory;
  const auto write_and_die = [&](const std::string& name) {
    const pid_t child = ::fork();
    if (child == 0) {
      AtomicFile file("test", directory / name);
      file.write("half");
      ::_exit(0);  // no destructor runs
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
  };
  for (int i = 0; i < 3; ++i) write_and_die("x");
  write_and_die(std::string(250, 'y'));
  CHECK(files_in(directory) == 1);  // each removed what the one before it had left
  const std::vector<std::string> of_others{"x.2024-12.tmp.gz", "x.tmp", "data.2024-12.tmp", "x.1-.tmp"};
  for (const std::string& name : of_others) write_bytes(directory / name, "mine");
  write_bytes(directory / "x.4711-0.tmp", "of an older version");
  AtomicFile other("test", directory / "z");
  other.write("still being written");
  write_file("test", directory / "x", "whole");
  CHECK(files_in(directory) == static_cast<std::ptrdiff_t>(of_others.size()) + 2);
  other.commit();
  CHECK(read_text(directory / "z") == "still being written");
}
