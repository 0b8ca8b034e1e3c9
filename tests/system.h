#pragma once

#include <cstdint>
#include <string>

/// What tests ask of the operating system; system_posix.cpp and system_windows.cpp.

namespace pleat_test {

/// Sets a variable of the environment; null: takes it away.
void set_variable(const std::string& name, const char* value);

/// While one exists, the process gets so many more bytes of addresses and no others, where the system knows
/// such a limit (Windows does not).
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(int64_t more);
  ~AddressSpaceLimit();
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

  bool holds() const { return before_ != 0; }

 private:
  void restore();

  uint64_t before_ = 0;  ///< the limit before; 0: not changed
};

/// The most memory that the process has ever asked the system for.
int64_t peak_memory_kb();

/// Whether a file can be replaced while it is open: not on wine 8.
bool replaces_open_files();
/// And while it is mapped: perhaps nowhere on Windows.
bool replaces_mapped_files();

/// Ends the process without destructors.
[[noreturn]] void leave(int status);

}  // namespace pleat_test
