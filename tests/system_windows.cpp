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
void AddressSpaceLimit::restore() {}

int64_t peak_memory_kb() {
  PROCESS_MEMORY_COUNTERS counters{};
  return GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters)
             ? static_cast<int64_t>(counters.PeakPagefileUsage >> 10)
             : 0;
}

namespace {
/// Whether a file can be replaced while `use` of it lasts.
template <class Use>
bool replaces_while(const Use& use) {
  const TemporaryDirectory directory;
  pleat::write_file("test", directory / "x", "old");
  const auto used = use(directory / "x");
  try {
    pleat::write_file("test", directory / "x", "new");
    return true;
  } catch (const pleat::FileError&) {
    return false;
  }
}
}  // namespace

bool replaces_open_files() {
  return replaces_while([](const auto& path) { return pleat::InputFile("test", path); });
}
bool replaces_mapped_files() {
  return replaces_while([](const auto& path) { return pleat::InputFile("test", path).map(); });
}

void leave(int status) { ::_exit(status); }

}  // namespace pleat_test
