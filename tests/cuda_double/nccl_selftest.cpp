// The double of NCCL: what several processes compute together, that one which waits for others does not stop
// its own threads, and that wrong use is noticed. Each rank is a process of its own.
#define PLEAT_CUDA_DOUBLE 1

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pleat/tests/catch.h"
#include "pleat/tests/cuda_double/double.h"
#include "pleat/tests/cuda_double/number.h"

using Catch::Matchers::Contains;

namespace {

using Bytes = std::vector<std::byte>;

/// In a process of a rank: ends it unless `holds`.
void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  _exit(1);
}
#define EXPECT(...) expect((__VA_ARGS__), std::to_string(__LINE__) + ": " #__VA_ARGS__)

struct Ended {
  bool well = false;
  std::string said;
};

ncclUniqueId new_id() {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  return id;
}

/// Runs `body` in so many processes.
std::vector<Ended> run_processes(int processes, const std::function<void(int)>& body) {
  std::vector<pid_t> children;
  std::vector<int> ends;
  for (int i = 0; i < processes; ++i) {
    std::array<int, 2> both{};
    REQUIRE(pipe(both.data()) == 0);
    const pid_t child = fork();
    if (child == 0) {
      close(both[0]);
      dup2(both[1], STDERR_FILENO);
      for (const int signal : {SIGABRT, SIGSEGV}) std::signal(signal, SIG_DFL);
      alarm(60);
      body(i);
      _exit(0);
    }
    close(both[1]);
    children.push_back(child);
    ends.push_back(both[0]);
  }
  std::vector<Ended> result;
  for (std::size_t i = 0; i < children.size(); ++i) {
    Ended ended;
    std::array<char, 512> part{};
    for (ssize_t n = 0; (n = read(ends[i], part.data(), part.size())) > 0;)
      ended.said.append(part.data(), static_cast<std::size_t>(n));
    close(ends[i]);
    int status = 0;
    waitpid(children[i], &status, 0);
    ended.well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    result.push_back(ended);
  }
  return result;
}

/// Runs `body(rank, communicator)` as the ranks of one communicator, which it destroys or not.
std::vector<Ended> run_ranks(int ranks, const std::function<void(int, ncclComm_t)>& body) {
  const ncclUniqueId id = new_id();
  const auto result = run_processes(ranks, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT(ncclCommInitRank(&comm, ranks, id, rank) == ncclSuccess);
    body(rank, comm);
  });
  // Where not all destroyed it.
  std::filesystem::remove_all(id.internal);
  return result;
}

void check_well(const std::vector<Ended>& all) {
  for (const Ended& each : all) {
    CHECK(each.said.empty());
    CHECK(each.well);
  }
}

std::size_t size_of(ncclDataType_t type) {
  return type == ncclFloat16 || type == ncclBfloat16 ? 2
         : type == ncclInt64 || type == ncclFloat64  ? 8
         : type == ncclInt8 || type == ncclUint8     ? 1
                                                     : 4;
}

template <class T>
void put_as(Bytes& to, std::size_t i, double value) {
  const auto number = static_cast<T>(value);
  std::memcpy(to.data() + i * sizeof(T), &number, sizeof(T));
}

template <class T>
double get_as(const Bytes& from, std::size_t i) {
  T number;
  std::memcpy(&number, from.data() + i * sizeof(T), sizeof(T));
  return static_cast<double>(number);
}

void put(ncclDataType_t type, Bytes& to, std::size_t i, double value) {
  const auto at = static_cast<int64_t>(i);
  if (type == ncclFloat16) return cuda_double::write_number(cuda_double::Type::f16, to.data(), at, value);
  if (type == ncclBfloat16) return cuda_double::write_number(cuda_double::Type::bf16, to.data(), at, value);
  if (type == ncclFloat32) return put_as<float>(to, i, value);
  if (type == ncclFloat64) return put_as<double>(to, i, value);
  if (type == ncclInt8) return put_as<int8_t>(to, i, value);
  if (type == ncclUint8) return put_as<uint8_t>(to, i, value);
  if (type == ncclInt32) return put_as<int32_t>(to, i, value);
  put_as<int64_t>(to, i, value);
}

double get(ncclDataType_t type, const Bytes& from, std::size_t i) {
  const auto at = static_cast<int64_t>(i);
  if (type == ncclFloat16) return cuda_double::read_number(cuda_double::Type::f16, from.data(), at);
  if (type == ncclBfloat16) return cuda_double::read_number(cuda_double::Type::bf16, from.data(), at);
  if (type == ncclFloat32) return get_as<float>(from, i);
  if (type == ncclFloat64) return get_as<double>(from, i);
  if (type == ncclInt8) return get_as<int8_t>(from, i);
  if (type == ncclUint8) return get_as<uint8_t>(from, i);
  if (type == ncclInt32) return get_as<int32_t>(from, i);
  return get_as<int64_t>(from, i);
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  EXPECT(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0) == cudaSuccess);
  return stream;
}

/// Numbers in memory of the device.
class Numbers {
 public:
  explicit Numbers(const std::vector<double>& values, ncclDataType_t type = ncclFloat32)
      : type_(type), count_(values.size()) {
    Bytes bytes(count_ * size_of(type));
    for (std::size_t i = 0; i < count_; ++i) put(type, bytes, i, values[i]);
    void* memory = nullptr;
    EXPECT(cudaMalloc(&memory, bytes.size()) == cudaSuccess);
    memory_ = static_cast<std::byte*>(memory);
    const cudaStream_t stream = new_stream();
    EXPECT(cudaMemcpyAsync(memory_, bytes.data(), bytes.size(), cudaMemcpyDefault, stream) == cudaSuccess);
    EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
  }

  void* at(std::size_t i = 0) const { return memory_ + i * size_of(type_); }
  /// Waits for no other stream.
  std::vector<double> values() const {
    Bytes bytes(count_ * size_of(type_));
    EXPECT(cudaMemcpyAsync(bytes.data(), memory_, bytes.size(), cudaMemcpyDefault, new_stream()) ==
           cudaSuccess);
    std::vector<double> result(count_);
    for (std::size_t i = 0; i < count_; ++i) result[i] = get(type_, bytes, i);
    return result;
  }

 private:
  ncclDataType_t type_;
  std::size_t count_;
  std::byte* memory_ = nullptr;
};

/// What a rank gives: numbers that a half holds, and sums of three of them.
std::vector<double> given_by(int rank, std::size_t count) {
  std::vector<double> result(count);
  for (std::size_t i = 0; i < count; ++i)
    result[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 5) % 11);
  return result;
}

double combined(ncclRedOp_t op, int ranks, std::size_t i, std::size_t count) {
  double result = given_by(0, count)[i];
  for (int rank = 1; rank < ranks; ++rank) {
    const double other = given_by(rank, count)[i];
    result = op == ncclMin   ? std::min(result, other)
             : op == ncclMax ? std::max(result, other)
                             : result + other;
  }
  return op == ncclAvg ? result / ranks : result;
}

std::vector<double> part_of(const std::vector<double>& values, int part, std::size_t size) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(size) * part;
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

bool is_folder(const ncclUniqueId& id) { return std::filesystem::exists(id.internal); }

}  // namespace

TEST_CASE("ranks of NCCL compute together") {
  constexpr std::size_t n = 6;
  for (const int ranks : {1, 2, 3})
    check_well(run_ranks(ranks, [ranks](int rank, ncclComm_t comm) {
      const cudaStream_t stream = new_stream();
      const auto wait = [&] { EXPECT(cudaStreamSynchronize(stream) == cudaSuccess); };
      const std::vector<ncclDataType_t> types = {ncclFloat32, ncclFloat16, ncclInt64, ncclBfloat16,
                                                 ncclFloat64, ncclInt32,   ncclInt8,  ncclUint8};
      for (const ncclDataType_t type : types) {
        for (const ncclRedOp_t op : {ncclSum, ncclMin, ncclMax, ncclAvg}) {
          const std::vector<double> own = given_by(rank, n);
          const Numbers x(own, type), y(std::vector<double>(n, 99), type);
          const bool refused =
              op == ncclAvg && (type == ncclInt64 || size_of(type) == 1 || type == ncclInt32);
          EXPECT(ncclAllReduce(x.at(), y.at(), n, type, op, comm, stream) ==
                 (refused ? ncclInvalidArgument : ncclSuccess));
          if (refused) continue;
          wait();
          EXPECT(x.values() == own);
          // Thirds are rounded to the type.
          std::vector<double> expected(n);
          for (std::size_t i = 0; i < n; ++i) {
            Bytes rounded(size_of(type));
            put(type, rounded, 0, combined(op, ranks, i, n));
            expected[i] = get(type, rounded, 0);
          }
          EXPECT(y.values() == expected);
          EXPECT(ncclAllReduce(x.at(), x.at(), n, type, op, comm, stream) == ncclSuccess);
          wait();
          EXPECT(x.values() == expected);
        }
      }

      const std::size_t all = n * static_cast<std::size_t>(ranks),
                        own_part = n * static_cast<std::size_t>(rank);
      std::vector<double> sums(all);
      for (std::size_t i = 0; i < all; ++i) sums[i] = combined(ncclSum, ranks, i, all);
      const Numbers parts(given_by(rank, all)), scattered(std::vector<double>(n, 99));
      ncclReduceScatter(parts.at(), scattered.at(), n, ncclFloat32, ncclSum, comm, stream);
      wait();
      EXPECT(scattered.values() == part_of(sums, rank, n));
      ncclReduceScatter(parts.at(), parts.at(own_part), n, ncclFloat32, ncclSum, comm, stream);
      wait();
      EXPECT(part_of(parts.values(), rank, n) == part_of(sums, rank, n));

      const Numbers gathered(std::vector<double>(all, 99)), own(given_by(rank, n));
      std::vector<double> of_all;
      for (int r = 0; r < ranks; ++r)
        for (const double value : given_by(r, n)) of_all.push_back(value);
      ncclAllGather(own.at(), gathered.at(), n, ncclFloat32, comm, stream);
      wait();
      EXPECT(gathered.values() == of_all);
      const Numbers in_place(std::vector<double>(all, rank));
      ncclAllGather(in_place.at(own_part), in_place.at(), n, ncclFloat32, comm, stream);
      wait();
      for (int r = 0; r < ranks; ++r) EXPECT(part_of(in_place.values(), r, n) == std::vector<double>(n, r));

      const int root = ranks - 1;
      const Numbers received(std::vector<double>(n, 99));
      ncclBroadcast(rank == root ? own.at() : nullptr, received.at(), n, ncclFloat32, root, comm, stream);
      wait();
      EXPECT(received.values() == given_by(root, n));
      ncclBroadcast(own.at(), own.at(), n, ncclFloat32, root, comm, stream);
      wait();
      EXPECT(own.values() == given_by(root, n));
      EXPECT(ncclBroadcast(own.at(), own.at(), n, ncclFloat32, ranks, comm, stream) == ncclInvalidArgument);
      EXPECT(ncclCommDestroy(comm) == ncclSuccess);
    }));
}

TEST_CASE("NCCL's sums are added in the order of ranks, halves in float") {
  check_well(run_ranks(3, [](int rank, ncclComm_t comm) {
    const Numbers x({std::array{1e8, 1.0, -1e8}[static_cast<std::size_t>(rank)]});
    ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, nullptr);
    const Numbers halves({std::array{2048.0, 1.0, 1.0}[static_cast<std::size_t>(rank)]}, ncclFloat16);
    ncclAllReduce(halves.at(), halves.at(), 1, ncclFloat16, ncclSum, comm, nullptr);
    cudaDeviceSynchronize();
    EXPECT(x.values()[0] == 0);
    EXPECT(halves.values()[0] == 2050);
  }));
}

TEST_CASE("a stream waits for a collective by an event, and a forgotten wait reads what was there") {
  for (const bool waits : {true, false})
    check_well(run_ranks(2, [waits](int rank, ncclComm_t comm) {
      cuda_double::set_seed(1);
      const cudaStream_t communication = new_stream(), compute = new_stream();
      const Numbers x({1.0 + rank}), y({0});
      cudaEvent_t event = nullptr;
      cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
      ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, communication);
      cudaEventRecord(event, communication);
      if (waits) cudaStreamWaitEvent(compute, event, 0);
      cudaMemcpyAsync(y.at(), x.at(), 4, cudaMemcpyDefault, compute);
      EXPECT(cudaStreamSynchronize(compute) == cudaSuccess);
      EXPECT(y.values()[0] == (waits ? 3 : 1 + rank));
      // Without a wait no rank has come, and none is waited for.
      EXPECT(x.values()[0] == (waits ? 3 : 1 + rank));
    }));
}

TEST_CASE("one communicator's collectives run in their order in two streams") {
  check_well(run_ranks(2, [](int, ncclComm_t comm) {
    const cudaStream_t a = new_stream(), b = new_stream();
    const Numbers x({1});
    for (int i = 0; i < 3; ++i) {
      ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, a);
      ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, b);
    }
    cudaStreamSynchronize(b);
    EXPECT(x.values()[0] == 64);
  }));
}

TEST_CASE("a rank whose host does not wait comes to a collective when another waits for it") {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  check_well(run_ranks(2, [ends](int rank, ncclComm_t comm) {
    cuda_double::set_seed(1);
    const Numbers x({1});
    ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, nullptr);
    char word = 'x';
    if (rank == 0) {
      EXPECT(read(ends[0], &word, 1) == 1);
    } else {
      cudaDeviceSynchronize();
      EXPECT(write(ends[1], &word, 1) == 1);
    }
    cudaDeviceSynchronize();
    EXPECT(x.values()[0] == 2);
  }));
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("questions about a stream, and what it is given, do not wait for other ranks") {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  check_well(run_ranks(2, [ends](int rank, ncclComm_t comm) {
    cuda_double::set_seed(2);
    const Numbers x({1});
    char word = 'x';
    if (rank == 1) EXPECT(read(ends[0], &word, 1) == 1);
    const cudaStream_t stream = new_stream();
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, stream);
    for (int i = 0; i < 20; ++i) cudaMemsetAsync(x.at(), 0, 4, stream);
    cudaEventRecord(event, stream);
    if (rank == 0) {
      for (int i = 0; i < 100; ++i) {
        EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady);
        EXPECT(cudaEventQuery(event) == cudaErrorNotReady);
      }
      EXPECT(write(ends[1], &word, 1) == 1);
    }
    while (cudaEventQuery(event) != cudaSuccess) std::this_thread::yield();
    EXPECT(cudaStreamQuery(stream) == cudaSuccess);
  }));
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("ranks that call differently are noticed") {
  const std::vector<Ended> counts = run_ranks(2, [](int rank, ncclComm_t comm) {
    const Numbers x(std::vector<double>(8, 1));
    ncclAllReduce(x.at(), x.at(), rank == 0 ? 8 : 4, ncclFloat32, ncclSum, comm, nullptr);
    cudaDeviceSynchronize();
  });
  CHECK_THAT(counts[0].said,
             Contains("collective 0 of a communicator: rank 0 calls ncclAllReduce of 8 float32, sum, rank 1 "
                      "ncclAllReduce of 4 float32, sum; a GPU hangs"));
  CHECK_THAT(counts[1].said,
             Contains("rank 1 calls ncclAllReduce of 4 float32, sum, rank 0 ncclAllReduce of 8"));
  const std::vector<Ended> kinds = run_ranks(2, [](int rank, ncclComm_t comm) {
    const Numbers x(std::vector<double>(8, 1));
    if (rank == 0)
      ncclBroadcast(x.at(), x.at(), 4, ncclFloat32, 1, comm, nullptr);
    else
      ncclAllReduce(x.at(), x.at(), 4, ncclFloat32, ncclMax, comm, nullptr);
    cudaDeviceSynchronize();
  });
  CHECK_THAT(kinds[0].said,
             Contains("rank 0 calls ncclBroadcast of 4 float32, root 1, rank 1 ncclAllReduce of 4 "
                      "float32, max"));
}

TEST_CASE("a thread that waits for a rank does not stop others, and one of them may abort") {
  const auto ended = run_ranks(2, [](int rank, ncclComm_t comm) {
    if (rank == 1) return;  // never comes
    const cudaStream_t stream = new_stream();
    const Numbers x({1, 2}), y({3, 4});
    std::atomic<bool> waited = false;
    ncclAllReduce(x.at(), y.at(), 2, ncclFloat32, ncclSum, comm, stream);
    std::thread waiting([&] {
      EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
      waited = true;
    });
    std::thread freeing([&] {
      void* memory = nullptr;
      EXPECT(cudaMalloc(&memory, 4) == cudaSuccess);
      EXPECT(cudaFree(memory) == cudaSuccess);  // waits for the device
    });
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const Numbers z({5, 6});
      EXPECT(z.values() == std::vector<double>{5, 6});
      ncclResult_t error = ncclInternalError;
      EXPECT(ncclCommGetAsyncError(comm, &error) == ncclSuccess);
      EXPECT(error == ncclSuccess);
    }
    EXPECT(!waited);
    EXPECT(ncclCommAbort(comm) == ncclSuccess);
    waiting.join();
    freeing.join();
    for (const double value : y.values()) EXPECT(std::isnan(value));
    EXPECT(cuda_double::things().nccl_communicators == 0);
  });
  check_well(ended);
}

TEST_CASE("wrong use of a communicator is noticed") {
  const auto said_by_one = [](const std::function<void(ncclComm_t)>& body) {
    return run_ranks(1, [&](int, ncclComm_t comm) { body(comm); })[0].said;
  };
  CHECK_THAT(said_by_one([](ncclComm_t comm) {
               ncclCommDestroy(comm);
               ncclCommDestroy(comm);
             }),
             Contains("cuda double: ncclCommDestroy: the communicator does not exist, or exists no more"));
  CHECK_THAT(said_by_one([](ncclComm_t comm) {
               cuda_double::set_seed(1);
               const Numbers x({1});
               ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, nullptr);
               ncclCommDestroy(comm);
             }),
             Contains("ncclCommDestroy: a collective of the communicator has not run"));
  CHECK_THAT(said_by_one([](ncclComm_t comm) {
               const Numbers x({1, 2});
               ncclAllReduce(x.at(0), x.at(1), 1, ncclFloat64, ncclSum, comm, nullptr);
             }),
             Contains("ncclAllReduce, recvbuff: reaches past the end of a block of 8 bytes"));
  CHECK_THAT(said_by_one([](ncclComm_t comm) {
               const Numbers x({1, 2, 3});
               ncclAllReduce(x.at(0), x.at(1), 2, ncclFloat32, ncclSum, comm, nullptr);
             }),
             Contains("ncclAllReduce: sendbuff and recvbuff overlap, and not as they do in place"));
  CHECK_THAT(said_by_one([](ncclComm_t comm) {
               const Numbers x({1, 2});
               std::array<float, 2> host{};
               ncclAllGather(host.data(), x.at(), 2, ncclFloat32, comm, nullptr);
             }),
             Contains("ncclAllGather, sendbuff: is given memory of the host"));
  CHECK_THAT(said_by_one([](ncclComm_t comm) {
               cudaSetDevice(1);
               const Numbers x({1, 2});
               ncclAllGather(x.at(), x.at(), 2, ncclFloat32, comm, nullptr);
             }),
             Contains("a communicator of device 0 is used while device 1 is the current one"));
  CHECK_THAT(said_by_one([](ncclComm_t comm) {
               cudaSetDevice(1);
               const Numbers x({1, 2});
               cudaSetDevice(0);
               ncclAllGather(x.at(), x.at(), 2, ncclFloat32, comm, nullptr);
             }),
             Contains("ncclAllGather, sendbuff: works on device 0 and is given memory of device 1"));
  CHECK_THAT(said_by_one([](ncclComm_t comm) {
               cudaSetDevice(1);
               const cudaStream_t stream = new_stream();
               cudaSetDevice(0);
               const Numbers x({1, 2});
               ncclAllGather(x.at(), x.at(), 2, ncclFloat32, comm, stream);
             }),
             Contains("a communicator of device 0 is given a stream of device 1"));
  CHECK_THAT(said_by_one([](ncclComm_t comm) {
               const cudaStream_t stream = new_stream();
               const Numbers x({1, 2});
               cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
               ncclAllGather(x.at(), x.at(), 2, ncclFloat32, comm, stream);
             }),
             Contains("ncclAllGather: the stream is being captured"));
  // A full queue makes the first thread wait in its call.
  const auto ended = run_ranks(2, [](int rank, ncclComm_t comm) {
    if (rank == 1) return;
    const cudaStream_t stream = new_stream();
    const Numbers x({1});
    const auto call = [&] { ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, stream); };
    call();
    for (int i = 1; i < 1024; ++i) cudaMemsetAsync(x.at(), 0, 4, stream);
    std::thread(call).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    call();
  });
  CHECK_THAT(ended[0].said,
             Contains("ncclAllReduce: another thread is in a call with the same communicator"));
}

TEST_CASE("ranks of NCCL that do not fit together are refused") {
  ncclUniqueId id{};
  const auto enter = [&id](int ranks, int rank) {
    ncclComm_t comm = nullptr;
    return ncclCommInitRank(&comm, ranks, id, rank);
  };
  const auto run_two = [&id](const std::function<void(int)>& body) {
    id = new_id();
    check_well(run_processes(2, body));
    std::filesystem::remove_all(id.internal);
  };
  run_two([&](int i) { EXPECT(enter(2 + i, i) == ncclInvalidArgument); });
  run_two([&](int) { EXPECT(enter(2, 0) == ncclInvalidArgument); });
  run_two([&](int i) {
    setenv("PLEAT_DOUBLE_SHARED_DEVICES", "1", 1);
    EXPECT(enter(2, i) == ncclInvalidUsage);
    EXPECT(!std::string(ncclGetLastError(nullptr)).empty());
  });
  run_two([&](int i) {
    setenv("PLEAT_DOUBLE_SHARED_DEVICES", "1", 1);
    cudaSetDevice(i);
    EXPECT(enter(2, i) == ncclSuccess);
  });
  run_two([&](int) { EXPECT(enter(2, 2) == ncclInvalidArgument); });
  // The folder is gone.
  check_well(run_processes(1, [&](int) { EXPECT(enter(1, 0) == ncclSystemError); }));
}

TEST_CASE("NCCL's faults, counts and things") {
  const ncclUniqueId id = new_id();
  CHECK(is_folder(id));
  check_well(run_processes(2, [&](int rank) {
    int version = 0;
    EXPECT(ncclGetVersion(&version) == ncclSuccess);
    EXPECT(version == 22809);
    ncclComm_t comm = nullptr;
    cuda_double::set_faults({.nccl = 1, .nccl_handle = 1});
    EXPECT(ncclCommInitRank(&comm, 2, id, rank) == ncclSystemError);
    EXPECT(cuda_double::things().nccl_communicators == 0);
    EXPECT(ncclCommInitRank(&comm, 2, id, rank) == ncclSuccess);
    EXPECT(cuda_double::things().nccl_communicators == 1);
    const Numbers x({1});
    EXPECT(ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, nullptr) == ncclUnhandledCudaError);
    EXPECT(ncclAllReduce(x.at(), x.at(), 0, ncclFloat32, ncclSum, comm, nullptr) == ncclSuccess);
    EXPECT(ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, nullptr) == ncclSuccess);
    EXPECT(cuda_double::counts().collectives == 1);
    EXPECT(cudaDeviceSynchronize() == cudaSuccess);
    EXPECT(ncclCommDestroy(comm) == ncclSuccess);
    EXPECT(cuda_double::things().nccl_communicators == 0);
  }));
  CHECK_FALSE(is_folder(id));
}

TEST_CASE("after an error of its device a rank does not come any more") {
  check_well(run_ranks(1, [](int, ncclComm_t comm) {
    cuda_double::set_seed(1);
    const Numbers x({1});
    ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, nullptr);
    cuda_double::set_faults({.kernel = 1});
    cudaLaunchConfig_t how{};
    how.gridDim = how.blockDim = dim3(1);
    const cudaStream_t stream = new_stream();
    how.stream = stream;
    EXPECT(cudaLaunchKernelEx(
               &how, +[] {}) == cudaSuccess);
    EXPECT(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    EXPECT(ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, nullptr) == ncclUnhandledCudaError);
    ncclResult_t error = ncclSuccess;
    EXPECT(ncclCommGetAsyncError(comm, &error) == ncclSuccess);
    EXPECT(error == ncclUnhandledCudaError);
    ncclComm_t other = nullptr;
    EXPECT(ncclCommInitRank(&other, 1, {}, 0) == ncclUnhandledCudaError);
    cuda_double::repair();
    EXPECT(x.values()[0] == 1);
    EXPECT(ncclAllReduce(x.at(), x.at(), 1, ncclFloat32, ncclSum, comm, nullptr) == ncclSuccess);
    EXPECT(cudaDeviceSynchronize() == cudaSuccess);
    EXPECT(ncclCommDestroy(comm) == ncclSuccess);
  }));
}
