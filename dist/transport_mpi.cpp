#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include <mpi.h>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/half.h"
#include "pleat/dist/init.h"
#include "pleat/dist/launcher.h"
#include "pleat/dist/transport.h"

namespace pleat::dist {
namespace {

/// Elements of one call of MPI, which counts in int.
constexpr int64_t most = int64_t{1} << 30;

constexpr int transfer_tag = 1;
constexpr int note_tag = 2;

void check_mpi(int code, const char* function) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  fail<DistError>("dist: {} failed: {}", function, text.data());
}

/// MPI has no type of half precision: two bytes, and operations of our own that compute in float.
template <class T, class F>
void reduce_halves(void* in, void* inout, int* count, const F& f) {
  const auto* const a = static_cast<const T*>(in);
  auto* const b = static_cast<T*>(inout);
  for (int i = 0; i < *count; ++i) b[i] = T(f(static_cast<float>(a[i]), static_cast<float>(b[i])));
}
template <class T>
void sum_halves(void* in, void* inout, int* count, MPI_Datatype*) {
  reduce_halves<T>(in, inout, count, [](float a, float b) { return a + b; });
}
template <class T>
void min_halves(void* in, void* inout, int* count, MPI_Datatype*) {
  reduce_halves<T>(in, inout, count, [](float a, float b) { return a < b || a != a ? a : b; });
}
template <class T>
void max_halves(void* in, void* inout, int* count, MPI_Datatype*) {
  reduce_halves<T>(in, inout, count, [](float a, float b) { return a > b || a != a ? a : b; });
}

/// The operations of one type of half precision, while MPI is up.
class HalfOps {
 public:
  template <class T>
  static HalfOps make() {
    HalfOps ops;
    check_mpi(MPI_Op_create(sum_halves<T>, 1, &ops.sum_), "MPI_Op_create");
    check_mpi(MPI_Op_create(min_halves<T>, 1, &ops.min_), "MPI_Op_create");
    check_mpi(MPI_Op_create(max_halves<T>, 1, &ops.max_), "MPI_Op_create");
    return ops;
  }
  MPI_Op of(ReduceOp op) const { return op == ReduceOp::min ? min_ : op == ReduceOp::max ? max_ : sum_; }
  void free() {
    for (MPI_Op* op : {&sum_, &min_, &max_}) MPI_Op_free(op);
  }

 private:
  MPI_Op sum_ = MPI_OP_NULL, min_ = MPI_OP_NULL, max_ = MPI_OP_NULL;
};

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case boolean:
    case uint8:
      return MPI_UINT8_T;
    case int32:
      return MPI_INT32_T;
    case int64:
      return MPI_INT64_T;
    case float32:
      return MPI_FLOAT;
    case float64:
      return MPI_DOUBLE;
    case bfloat16:
    case float16:
      break;
  }
  return MPI_DATATYPE_NULL;
}

template <class T>
void scale(std::byte* data, int64_t count, float factor) {
  auto* const values = reinterpret_cast<T*>(data);
  for (int64_t i = 0; i < count; ++i) values[i] = T(static_cast<float>(values[i]) * factor);
}
void divide(std::byte* data, int64_t count, DType dtype, int by) {
  if (dtype == float64) {
    auto* const values = reinterpret_cast<double*>(data);
    for (int64_t i = 0; i < count; ++i) values[i] /= by;
  } else if (dtype == float32) {
    auto* const values = reinterpret_cast<float*>(data);
    for (int64_t i = 0; i < count; ++i) values[i] /= static_cast<float>(by);
  } else if (dtype == float16) {
    scale<Half>(data, count, 1.0F / static_cast<float>(by));
  } else {
    scale<BFloat16>(data, count, 1.0F / static_cast<float>(by));
  }
}

class MpiTransport : public Transport {
 public:
  MpiTransport() {
    int up = 0;
    MPI_Initialized(&up);
    check<DistError>(up == 0, "dist::init: the program has called MPI_Init itself; leave MPI to dist::init");
    int provided = 0;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    check<DistError>(provided >= MPI_THREAD_FUNNELED,
                     "dist::init: this MPI does not let another thread than the first call it "
                     "(MPI_THREAD_FUNNELED); take another build of it");
    for (MPI_Comm* comm : {&data_, &agreement_}) {
      check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, comm), "MPI_Comm_dup");
      MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
    }
    MPI_Comm_rank(data_, &rank_);
    MPI_Comm_size(data_, &size_);
    MPI_Comm machine;
    check_mpi(MPI_Comm_split_type(data_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine),
              "MPI_Comm_split_type");
    MPI_Comm_rank(machine, &local_rank_);
    MPI_Comm_size(machine, &local_size_);
    MPI_Comm_free(&machine);
    check_mpi(MPI_Type_contiguous(2, MPI_BYTE, &two_bytes_), "MPI_Type_contiguous");
    check_mpi(MPI_Type_commit(&two_bytes_), "MPI_Type_commit");
    float16_ = HalfOps::make<Half>();
    bfloat16_ = HalfOps::make<BFloat16>();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }

  std::string version() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    // "Open MPI v4.1.4, package: Debian OpenMPI, ..."; "MPICH Version:\t4.0.2\nMPICH Release date: ..."
    std::string version(text.data(), static_cast<std::size_t>(length));
    version = version.substr(0, version.find_first_of(",\n"));
    std::replace(version.begin(), version.end(), '\t', ' ');
    return version;
  }

  void begin_min(std::span<uint64_t> values) override {
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_UINT64_T,
                             MPI_MIN, agreement_, &min_),
              "MPI_Iallreduce");
  }
  bool min_is_done() override { return is_done(min_); }

  void all_reduce(std::byte* data, int64_t count, DType dtype, ReduceOp op) override {
    if (op == ReduceOp::mean && is_half(dtype)) divide(data, count, dtype, size_);  // a sum may overflow
    const int64_t size = size_of(dtype);
    for (int64_t done = 0; done < count; done += most)
      check_mpi(
          MPI_Allreduce(MPI_IN_PLACE, data + done * size, static_cast<int>(std::min(most, count - done)),
                        type(dtype), op_of(op, dtype), data_),
          "MPI_Allreduce");
    if (op == ReduceOp::mean && !is_half(dtype)) divide(data, count, dtype, size_);
  }

  void reduce_scatter(const std::byte* in, std::byte* out, int64_t count, DType dtype, ReduceOp op) override {
    const int64_t size = size_of(dtype);
    std::vector<std::byte> copy(in, in + count * size * size_);
    if (op == ReduceOp::mean && is_half(dtype)) divide(copy.data(), count * size_, dtype, size_);
    check<DistError>(count * size_ <= most, "dist: reduce_scatter takes up to {} elements, got {}", most,
                     count * size_);
    check_mpi(MPI_Reduce_scatter_block(copy.data(), out, static_cast<int>(count), type(dtype),
                                       op_of(op, dtype), data_),
              "MPI_Reduce_scatter_block");
    if (op == ReduceOp::mean && !is_half(dtype)) divide(out, count, dtype, size_);
  }

  void all_gather(const std::byte* in, std::byte* out, int64_t bytes) override {
    if (bytes <= most) {
      check_mpi(
          MPI_Allgather(in, static_cast<int>(bytes), MPI_BYTE, out, static_cast<int>(bytes), MPI_BYTE, data_),
          "MPI_Allgather");
      return;
    }
    std::copy_n(in, bytes, out + rank_ * bytes);
    for (int root = 0; root < size_; ++root) broadcast(out + root * bytes, bytes, root);
  }

  void broadcast(std::byte* data, int64_t bytes, int root) override {
    for (int64_t done = 0; done < bytes; done += most)
      check_mpi(MPI_Bcast(data + done, static_cast<int>(std::min(most, bytes - done)), MPI_BYTE, root, data_),
                "MPI_Bcast");
  }

  void send(const std::byte* data, int64_t bytes, int to, std::shared_ptr<void> owner) override {
    for (int64_t done = 0; done == 0 || done < bytes; done += most)
      check_mpi(MPI_Isend(data + done, static_cast<int>(std::min(most, bytes - done)), MPI_BYTE, to,
                          transfer_tag, data_, &sends_.emplace_back()),
                "MPI_Isend");
    sent_.push_back(std::move(owner));
  }
  bool sends_are_done() override {
    const bool done = are_done(sends_);
    if (done) sent_.clear();
    return done;
  }
  void begin_receive(std::byte* data, int64_t bytes, int from) override {
    for (int64_t done = 0; done == 0 || done < bytes; done += most)
      check_mpi(MPI_Irecv(data + done, static_cast<int>(std::min(most, bytes - done)), MPI_BYTE, from,
                          transfer_tag, data_, &receives_.emplace_back()),
                "MPI_Irecv");
  }
  bool receive_is_done() override { return are_done(receives_); }

  void send_message(int to, const Message& message) override {
    // Whether it arrives is not waited for: it is small, and the other may be gone.
    MPI_Request request;
    const Message* const kept = messages_.emplace_back(std::make_unique<Message>(message)).get();
    check_mpi(MPI_Isend(kept, sizeof *kept, MPI_BYTE, to, note_tag, agreement_, &request), "MPI_Isend");
    MPI_Request_free(&request);
  }
  std::optional<std::pair<int, Message>> receive_message() override {
    int arrived = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, note_tag, agreement_, &arrived, &status), "MPI_Iprobe");
    if (arrived == 0) return {};
    Message message;
    check_mpi(MPI_Recv(&message, sizeof message, MPI_BYTE, status.MPI_SOURCE, note_tag, agreement_,
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
    return std::pair{status.MPI_SOURCE, message};
  }

  void finish() override {
    float16_.free();
    bfloat16_.free();
    MPI_Type_free(&two_bytes_);
    for (MPI_Comm* comm : {&data_, &agreement_}) MPI_Comm_free(comm);
    check_mpi(MPI_Finalize(), "MPI_Finalize");
  }
  void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  bool is_done(MPI_Request& request) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }
  static bool are_done(std::vector<MPI_Request>& requests) {
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    if (done != 0) requests.clear();
    return done != 0;
  }
  MPI_Datatype type(DType dtype) const { return is_half(dtype) ? two_bytes_ : type_of(dtype); }
  MPI_Op op_of(ReduceOp op, DType dtype) const {
    if (dtype == float16) return float16_.of(op);
    if (dtype == bfloat16) return bfloat16_.of(op);
    return op == ReduceOp::min ? MPI_MIN : op == ReduceOp::max ? MPI_MAX : MPI_SUM;
  }

  MPI_Comm data_ = MPI_COMM_NULL;
  MPI_Comm agreement_ = MPI_COMM_NULL;  ///< of what the engines say to each other
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  MPI_Datatype two_bytes_ = MPI_DATATYPE_NULL;
  HalfOps float16_, bfloat16_;
  MPI_Request min_ = MPI_REQUEST_NULL;
  std::vector<MPI_Request> sends_, receives_;
  std::vector<std::shared_ptr<void>> sent_;         ///< owners of what `sends_` sends
  std::vector<std::unique_ptr<Message>> messages_;  ///< that were sent
};

}  // namespace

bool is_mpi_built() { return true; }

std::unique_ptr<Transport> connect() {
  auto transport = std::make_unique<MpiTransport>();
  check_launcher(transport->size());
  return transport;
}

}  // namespace pleat::dist
