#include "pleat/core/memory/host_memory.h"

#include <fstream>
#include <string>

#include "pleat/core/base/error.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using Catch::Matchers::Contains;
using pleat_test::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("the host's memory is what the machine and its control groups allow", "[core][limits]") {
  const TemporaryDirectory folder;
  const fs::path root = folder.path();
  CHECK(read_host_memory(root) == 0);
  write(root / "proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nSwapTotal:   24 kB\n");
  CHECK(read_host_memory(root) == 1024 * 1024);

  SECTION("version 2: the least of a group and those around it, with their swap") {
    write(root / "proc/self/cgroup", "0::/batch/job\n");
    write(root / "sys/fs/cgroup/batch/job/memory.max", "max\n");
    CHECK(read_host_memory(root) == 1024 * 1024);
    write(root / "sys/fs/cgroup/batch/memory.max", "500000\n");
    write(root / "sys/fs/cgroup/batch/memory.swap.max", "0\n");
    CHECK(read_host_memory(root) == 500000);
    write(root / "sys/fs/cgroup/batch/job/memory.max", "300000\n");
    CHECK(read_host_memory(root) == 300000 + 24 * 1024);
  }
  SECTION("version 1, where a container sees its own group as the root") {
    write(root / "proc/self/cgroup", "12:cpu,cpuacct:/a\n7:memory:/docker/abc\n");
    write(root / "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(read_host_memory(root) == 1024 * 1024);
    write(root / "sys/fs/cgroup/memory/memory.limit_in_bytes", "200000\n");
    CHECK(read_host_memory(root) == 200000 + 24 * 1024);
  }
}

TEST_CASE("what the machine does not have is refused before it is touched", "[core][limits][cpu]") {
  CHECK(host_memory() > 0);
  const AllocatorStatistics before = allocator_statistics();
  CHECK_THROWS_AS(zeros({int64_t{1} << 40}), OutOfMemoryError);
  CHECK_THROWS_AS(randperm(int64_t{1} << 40), OutOfMemoryError);
  CHECK_THROWS_AS(rand({int64_t{1} << 30, int64_t{1} << 20}), OutOfMemoryError);
  CHECK(allocator_statistics().allocated == before.allocated);

  const HostMemoryScope machine(before.allocated + (int64_t{3} << 20));
  const Tensor kept = zeros({1 << 19});  // 2 MiB
  CHECK_THROWS_WITH(zeros({1 << 19}),
                    Contains("allocate: 2.0 MiB cannot be had on the cpu: the machine has") &&
                        Contains("use smaller sizes or a smaller batch"));
  CHECK_NOTHROW(zeros({1 << 17}));
  CHECK_NOTHROW(check_host_memory("op", 1000));
  CHECK_THROWS_WITH(check_host_memory("avg_pool", 2 << 20),
                    Contains("avg_pool: tables of 2.0 MiB cannot be had"));
}

TEST_CASE("memory that is kept for reuse makes room for what needs it", "[core][limits][cpu]") {
  empty_cache();
  const HostMemoryScope machine(allocator_statistics().allocated + (int64_t{3} << 20));
  { const Tensor once = zeros({1 << 19}); }
  CHECK(allocator_statistics().cached >= 2 << 20);
  CHECK_NOTHROW(zeros({5 << 17}));  // 2.5 MiB: only without what is kept
}
