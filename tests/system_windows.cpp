#include <cstdlib>

#include <process.h>
#include <windows.h>
// After it.
#include <psapi.h>

#include "pleat/core/base/error.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/files/input_file.h"
#include "pleat/tests/system.h"
#include "pleat/tests/temporary_directory.h"

namespace pleat_test {

void set_variable(const std::string& name, const char* value) {
  ::_putenv_s(name.c_str(), value != nullptr ? value : "");
}

AddressSpaceLimit::AddressSpaceLimit(int64_t) {}
AddressSpaceLimit::~AddressSpaceLimit() = default;

int64_t peak_memory_kb() {
  PROCESS_MEMORY_COUNTERS counters{};
  return GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters)
             ? static_cast<int64_t>(counters.PeakPagefileUsage >> 10)
             : 0;
}

bool replaces_open_files() {
  const TemporaryDirectory directory;
  pleat::write_file("test", directory / "x", "old");
  const pleat::InputFile open("test", directory / "x");
  try {
    pleat::write_file("test", directory / "x", "new");
    return true;
  } catch (const pleat::FileError&) {
    return false;
  }
}

void leave(int status) { ::_exit(status); }

}  // namespace pleat_test
