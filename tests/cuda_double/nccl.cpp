// NCCL, as far as Pleat calls it, between processes on one machine. NVIDIA's documentation of NCCL says what
// each function does and refuses. The unique id is the path of a folder (nccl_folder.h). A collective is a
// task of its stream: when it is the first, the rank arrives, which writes its numbers to the file
// "<collective>.<rank>", and the task goes on when the files of all ranks are there.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "finding.h"
#include "graph.h"
#include "memory.h"
#include "nccl_folder.h"
#include "nccl_reduce.h"
#include "queue.h"
#include <cuda_runtime_api.h>
#include <nccl.h>

using namespace cuda_double;

struct ncclComm {
  struct Given {
    uint64_t collective;
    StreamState* stream;
  };

  NcclFolder folder;
  int device;
  int rank;
  int ranks;
  /// A collective runs after the one before it, also in another stream: each is a record of this event.
  EventState order{.device = device, .timing = false};
  std::deque<Given> to_arrive = {};                  ///< collectives that the rank has not come to
  std::chrono::steady_clock::time_point asked = {};  ///< since when another rank waits for this one
  bool aborted = false;
  std::thread::id user = {};  ///< whose call uses it now
};

namespace {

using Guard = std::lock_guard<Lock>;
using Clock = std::chrono::steady_clock;

/// After so long a wait of another rank a stream comes to a collective by itself, as on a GPU.
constexpr auto patience = std::chrono::milliseconds(50);

struct Communicators {
  std::mutex mutex;
  std::map<ncclComm*, std::unique_ptr<ncclComm>> made;
  std::vector<std::unique_ptr<ncclComm>> gone;  ///< to which tasks may still refer
};
Communicators& communicators() {
  static auto* result = new Communicators;
  return *result;
}

/// Ends the process for one that does not exist. The caller holds the mutex.
void require_made(ncclComm_t comm, const std::string& what) {
  if (!communicators().made.contains(comm))
    finding(what + ": the communicator does not exist, or exists no more");
}

/// A call that uses a communicator, from before it waits for the lock: of one thread at a time.
class Use {
 public:
  Use(ncclComm_t comm, const std::string& what) : comm_(comm) {
    const std::lock_guard guard(communicators().mutex);
    require_made(comm, what);
    if (comm->user != std::thread::id())
      finding(what + ": another thread is in a call with the same communicator");
    comm->user = std::this_thread::get_id();
  }
  ~Use() {
    const std::lock_guard guard(communicators().mutex);
    comm_->user = {};
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  ncclComm_t comm_;
};

thread_local std::string last_refusal;

ncclResult_t refuse(ncclResult_t status, const std::string& why) {
  last_refusal = why;
  return status;
}

// What ranks tell each other at the beginning, in files "joined.<rank>".

struct Joined {
  int32_t ranks;
  std::array<char, 16> device;
};

std::array<char, 16> name_of_device(int device) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, device);
  std::array<char, 16> result{};
  std::memcpy(result.data(), properties.uuid.bytes, result.size());
  return result;
}

/// Ends the meeting for all that are still in it.
ncclResult_t refuse_all(const NcclFolder& folder, ncclResult_t status, const std::string& why) {
  folder.write("refused", &status, sizeof status);
  return refuse(status, why);
}

/// Returns when all ranks have come, or one that cannot be.
ncclResult_t meet(const NcclFolder& folder, int ranks, int rank) {
  const Joined own{ranks, name_of_device(current_device())};
  const std::string name = "joined." + std::to_string(rank);
  if (!folder.write(name, &own, sizeof own))
    return refuse_all(folder, ncclInvalidArgument, "there are two ranks " + std::to_string(rank));
  for (;;) {
    if (folder.has("refused")) {
      ncclResult_t status{};
      folder.read("refused", 0, &status, sizeof status);
      return refuse(status, "the ranks do not fit together");
    }
    const std::vector<std::string> joined = folder.names("joined.");
    for (const std::string& other : joined) {
      Joined its{};
      folder.read(other, 0, &its, sizeof its);
      if (its.ranks != ranks)
        return refuse_all(folder, ncclInvalidArgument,
                          "one rank says that there are " + std::to_string(ranks) + ", another " +
                              std::to_string(its.ranks));
      if (other != name && its.device == own.device)
        return refuse_all(folder, ncclInvalidUsage, "two ranks use the same device");
    }
    if (joined.size() == static_cast<std::size_t>(ranks)) return ncclSuccess;
    suspend();
  }
}

/// The last of the ranks that leave removes the folder. Files of one that leaves stay so long: others may not
/// have read them yet.
void leave(const ncclComm& comm) {
  comm.folder.write("left." + std::to_string(comm.rank), nullptr, 0);
  if (comm.folder.names("left.").size() == static_cast<std::size_t>(comm.ranks)) comm.folder.remove_all();
}

void forget(ncclComm_t comm) {
  const std::lock_guard guard(communicators().mutex);
  auto node = communicators().made.extract(comm);
  communicators().gone.push_back(std::move(node.mapped()));
}

// Collectives.

enum class Operation : int32_t { all_reduce, reduce_scatter, all_gather, broadcast };

/// The beginning of a rank's file. It must be the same in those of all ranks.
struct Call {
  Operation kind;
  ncclDataType_t type;
  ncclRedOp_t op = ncclSum;
  int32_t root = 0;
  uint64_t count;
  bool operator==(const Call&) const = default;
};

const char* name_of(Operation kind) {
  switch (kind) {
    case Operation::all_reduce:
      return "ncclAllReduce";
    case Operation::reduce_scatter:
      return "ncclReduceScatter";
    case Operation::all_gather:
      return "ncclAllGather";
    case Operation::broadcast:
      break;
  }
  return "ncclBroadcast";
}

bool reduces(Operation kind) { return kind == Operation::all_reduce || kind == Operation::reduce_scatter; }

std::string text_of(const Call& call) {
  std::string result = std::string(name_of(call.kind)) + " of " + std::to_string(call.count) + " " +
                       cuda_double::name_of(call.type);
  if (reduces(call.kind)) result += std::string(", ") + cuda_double::name_of(call.op);
  if (call.kind == Operation::broadcast) result += ", root " + std::to_string(call.root);
  return result;
}

struct Buffers {
  const std::byte* send;
  std::size_t send_bytes;
  std::byte* receive;
  std::size_t receive_bytes;
};

std::string file_of(uint64_t collective, int rank) {
  return std::to_string(collective) + "." + std::to_string(rank);
}

void arrive(ncclComm& comm, uint64_t collective, const Call& call, const Buffers& buffers) {
  if (comm.aborted) return;
  // Those before it that an error of the device has taken away go, too.
  while (!comm.to_arrive.empty() && comm.to_arrive.front().collective <= collective)
    comm.to_arrive.pop_front();
  comm.asked = {};
  // All ranks are done with the last but one: they have come to the last.
  if (collective >= 2) comm.folder.remove(file_of(collective - 2, comm.rank));
  comm.folder.write(file_of(collective, comm.rank), &call, sizeof call, buffers.send, buffers.send_bytes);
}

/// `first`: the first rank that had not arrived when this was asked before.
bool all_arrived(const ncclComm& comm, uint64_t collective, int& first) {
  while (first < comm.ranks && comm.folder.has(file_of(collective, first))) ++first;
  return first == comm.ranks;
}

void require_same(const ncclComm& comm, uint64_t collective, const Call& own) {
  for (int rank = 0; rank < comm.ranks; ++rank) {
    Call other{};
    comm.folder.read(file_of(collective, rank), 0, &other, sizeof other);
    if (other == own) continue;
    finding("collective " + std::to_string(collective) + " of a communicator: rank " +
            std::to_string(comm.rank) + " calls " + text_of(own) + ", rank " + std::to_string(rank) + " " +
            text_of(other) + "; a GPU hangs, or computes something else");
  }
}

void compute(const ncclComm& comm, uint64_t collective, const Call& call, const Buffers& buffers) {
  const std::size_t part = call.count * bytes_of(call.type);
  const auto own_part = static_cast<std::size_t>(comm.rank) * part;
  const auto read = [&](int rank, std::size_t from) {
    std::vector<std::byte> result(part);
    comm.folder.read(file_of(collective, rank), sizeof call + from, result.data(), part);
    return result;
  };
  if (call.kind == Operation::broadcast) {
    std::memcpy(buffers.receive, read(call.root, 0).data(), part);
    return;
  }
  std::vector<std::vector<std::byte>> of_ranks;
  for (int rank = 0; rank < comm.ranks; ++rank)
    of_ranks.push_back(read(rank, call.kind == Operation::reduce_scatter ? own_part : 0));
  if (reduces(call.kind)) return reduce(call.type, call.op, call.count, of_ranks, buffers.receive);
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
    std::memcpy(buffers.receive + rank * part, of_ranks[rank].data(), part);
}

/// Lets a stream go on to its next collective when another rank has waited for it long enough. Only then, so
/// that work which the host does not wait for stays late.
void answer_others(ncclComm& comm) {
  if (comm.to_arrive.empty()) return;
  const auto [collective, stream] = comm.to_arrive.front();
  const auto waits = [&comm, number = collective](int rank) {
    return rank != comm.rank && comm.folder.has(file_of(number, rank));
  };
  int rank = 0;
  while (rank < comm.ranks && !waits(rank)) ++rank;
  if (rank == comm.ranks) return;
  if (comm.asked == Clock::time_point()) comm.asked = Clock::now();
  if (Clock::now() - comm.asked < patience) return;
  const auto has_arrived = [&comm, number = collective] {
    return comm.to_arrive.empty() || comm.to_arrive.front().collective > number;
  };
  while (!has_arrived() && !stream->tasks.empty() && try_first(*stream)) continue;
}

void answer_others_forever() {
  for (;;) {
    std::this_thread::sleep_for(patience / 5);
    const Guard guard(lock());
    std::vector<ncclComm*> all;
    {
      const std::lock_guard made(communicators().mutex);
      for (const auto& [comm, owned] : communicators().made) all.push_back(comm);
    }
    for (ncclComm* const comm : all) answer_others(*comm);
  }
}

/// `in_place`: where the result lies from `send` on when it may overlap.
void require_buffers(const ncclComm& comm, const std::string& what, const Buffers& buffers,
                     std::ptrdiff_t in_place) {
  require_on_device((what + ", sendbuff").c_str(), buffers.send, buffers.send_bytes, comm.device);
  require_on_device((what + ", recvbuff").c_str(), buffers.receive, buffers.receive_bytes, comm.device);
  const bool apart = buffers.send + buffers.send_bytes <= buffers.receive ||
                     buffers.receive + buffers.receive_bytes <= buffers.send;
  if (buffers.send_bytes > 0 && !apart && buffers.receive != buffers.send + in_place)
    finding(what + ": sendbuff and recvbuff overlap, and not as they do in place");
}

ncclResult_t give(const Call& call, const void* send, void* receive, ncclComm_t comm, cudaStream_t handle) {
  const std::string what = name_of(call.kind);
  const Use use(comm, what);
  const Guard guard(lock());
  if (comm->device != current_device())
    finding(what + ": a communicator of device " + std::to_string(comm->device) + " is used while device " +
            std::to_string(current_device()) + " is the current one");
  if (device_error(comm->device) != cudaSuccess)
    return refuse(ncclUnhandledCudaError, cudaGetErrorString(device_error(comm->device)));
  if (fault(&Faults::nccl)) return refuse(ncclUnhandledCudaError, "a fault that was ordered");
  if (bytes_of(call.type) == 0 || !has_reduction(call.type, call.op) || call.root < 0 ||
      call.root >= comm->ranks)
    return refuse(ncclInvalidArgument, what + ": a type, an operation or a root that there is none of");
  StreamState& stream = stream_of(handle);
  if (stream.device != comm->device)
    finding(what + ": a communicator of device " + std::to_string(comm->device) +
            " is given a stream of device " + std::to_string(stream.device));
  if (stream.recording != nullptr) finding(what + ": the stream is being captured");
  if (may_enqueue(stream) != cudaSuccess) return refuse(ncclUnhandledCudaError, "a stream is being captured");

  const std::size_t part = call.count * bytes_of(call.type);
  const std::size_t all = part * static_cast<std::size_t>(comm->ranks);
  const auto own_part = static_cast<std::ptrdiff_t>(part) * comm->rank;
  // Only the root's input counts.
  const bool sends = call.kind != Operation::broadcast || call.root == comm->rank;
  const Buffers buffers{sends ? static_cast<const std::byte*>(send) : nullptr,
                        !sends                                   ? 0
                        : call.kind == Operation::reduce_scatter ? all
                                                                 : part,
                        static_cast<std::byte*>(receive), call.kind == Operation::all_gather ? all : part};
  require_buffers(*comm, what, buffers,
                  call.kind == Operation::reduce_scatter ? own_part
                  : call.kind == Operation::all_gather   ? -own_part
                                                         : 0);
  // Of nothing NCCL makes no call: the ranks do not meet.
  if (call.count == 0) return ncclSuccess;

  ++counted().collectives;
  EventState& order = comm->order;
  if (order.recorded > 0 && order.stream != &stream)
    enqueue(stream, {.what = "waiting for the collective before",
                     .awaited = &order,
                     .source = order.stream,
                     .number = order.recorded});
  const uint64_t collective = order.recorded;
  comm->to_arrive.push_back({collective, &stream});
  enqueue(
      stream,
      {.what = what,
       .begin = [=] { arrive(*comm, collective, call, buffers); },
       .ready = [=, first = 0]() mutable { return comm->aborted || all_arrived(*comm, collective, first); },
       .run =
           [=] {
             if (comm->aborted) {
               std::memset(buffers.receive, 0xFF, buffers.receive_bytes);
               return;
             }
             require_same(*comm, collective, call);
             compute(*comm, collective, call, buffers);
           },
       .marked = &order});
  return ncclSuccess;
}

}  // namespace

int64_t cuda_double::nccl_communicators() {
  const std::lock_guard guard(communicators().mutex);
  return static_cast<int64_t>(communicators().made.size());
}

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    default:
      return "another result";
  }
}

const char* ncclGetLastError(ncclComm_t) { return last_refusal.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Guard guard(lock());
  const auto folder = NcclFolder::make(NCCL_UNIQUE_ID_BYTES);
  if (!folder) return refuse(ncclSystemError, "there is no folder for the files between the ranks");
  *id = {};
  folder->path().copy(id->internal, NCCL_UNIQUE_ID_BYTES - 1);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  const Guard guard(lock());
  const int device = current_device();
  if (device_error(device) != cudaSuccess)
    return refuse(ncclUnhandledCudaError, cudaGetErrorString(device_error(device)));
  if (forbidden_while_capturing() != cudaSuccess)
    return refuse(ncclUnhandledCudaError, "a stream is being captured");
  if (fault(&Faults::nccl_handle)) return refuse(ncclSystemError, "a fault that was ordered");
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return refuse(ncclInvalidArgument,
                  "there is no rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  const NcclFolder folder(std::string(id.internal, strnlen(id.internal, sizeof id.internal)));
  if (!folder.exists()) return refuse(ncclSystemError, "nobody made this unique id, or all ranks have left");
  if (const ncclResult_t status = meet(folder, ranks, rank); status != ncclSuccess) return status;
  auto made = std::make_unique<ncclComm>(ncclComm{folder, device, rank, ranks});
  *comm = made.get();
  const std::lock_guard others(communicators().mutex);
  communicators().made.emplace(*comm, std::move(made));
  static const bool started = [] { return std::thread(answer_others_forever).detach(), true; }();
  (void)started;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Use use(comm, "ncclCommDestroy");
  const Guard guard(lock());
  if (comm->order.done < comm->order.recorded)
    finding("ncclCommDestroy: a collective of the communicator has not run; wait for its stream first");
  leave(*comm);
  forget(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Guard guard(lock());
  {
    const std::lock_guard others(communicators().mutex);
    require_made(comm, "ncclCommAbort");
  }
  comm->aborted = true;
  leave(*comm);
  forget(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const Guard guard(lock());
  const std::lock_guard others(communicators().mutex);
  require_made(comm, "ncclCommGetAsyncError");
  *error = device_error(comm->device) != cudaSuccess ? ncclUnhandledCudaError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return give({.kind = Operation::all_reduce, .type = type, .op = op, .count = count}, send, receive, comm,
              stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return give({.kind = Operation::reduce_scatter, .type = type, .op = op, .count = count}, send, receive,
              comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return give({.kind = Operation::all_gather, .type = type, .count = count}, send, receive, comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return give({.kind = Operation::broadcast, .type = type, .root = root, .count = count}, send, receive, comm,
              stream);
}

}  // extern "C"
