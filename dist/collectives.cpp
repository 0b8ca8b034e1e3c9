#include "pleat/dist/collectives.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/dist/raw_collectives.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::dist {
namespace {

constexpr std::size_t most_dimensions = 30;

/// Row-major.
Tensor empty_on(Device device, Shape shape, DType dtype) {
  return empty(std::move(shape), {.dtype = dtype, .device = device});
}
/// A row-major copy, off the tape.
Tensor copy_on(Device device, const Tensor& x) {
  const Tensor copy = empty_on(device, x.shape(), x.dtype());
  ops::copy_into(copy, x);
  return copy;
}

int64_t bytes_of(const Tensor& x) { return x.numel() * size_of(x.dtype()); }

/// Begins a call on tensors that are where the ranks move them. `bytes` are those that this rank gives.
Call begin(Engine& engine, const char* op, const std::string& what, int64_t bytes,
           const std::vector<Tensor>& tensors, const std::function<void(Collectives&)>& call) {
  const auto recorded = [op, bytes, call](Collectives& collectives) {
    const RecordFunction range(op);
    range.add({.bytes = static_cast<double>(bytes)});
    call(collectives);
  };
  const Device device = tensors.front().device();
  if (device.is_cpu())
    return {engine.submit(what, [tensors, recorded](Transport& transport) { recorded(transport); })};
  if (const Capture* capture = Capture::current())
    capture->refuse(what.c_str(), "the ranks compare each call before they make it");
  const cuda::Event ready({.device = device}), done({.device = device});
  ready.record();
  return {engine.submit(what + " on GPUs",
                        [&engine, ready, done, tensors, recorded](Transport&) {
                          engine.gpus().run(ready, done, tensors, recorded);
                        }),
          done};
}

void check_rank(const char* op, const Communicator& world, int rank) {
  check<IndexError>(rank >= 0 && rank < world.size(), "{}: there is no rank {}; there are {}, from 0", op,
                    rank, world.size());
}

bool on_tape(const Tensor& x) { return grad_enabled() && x.requires_grad(); }

void check_differentiable(const char* op, const Tensor& x, ReduceOp how) {
  check<AutogradError>(how == ReduceOp::sum || how == ReduceOp::mean || !on_tape(x),
                       "{}: a {} has no gradient; give it x.detach(), or take the sum or mean", op,
                       name(how));
}

Tensor all_reduce_now(const Tensor& x, const Communicator& world, ReduceOp op) {
  check_reducible("all_reduce", x, op);
  Engine* const engine = EngineAccess::of(world);
  const Tensor y = copy_on(moving_device(engine, "all_reduce", x), x);
  if (engine != nullptr) wait(*engine, begin_all_reduce(*engine, y, op, ""));
  return ops::to_device(y, x.device());
}

Tensor all_gather_now(const Tensor& x, const Communicator& world) {
  check<ShapeError>(x.rank() >= 1,
                    "all_gather: needs at least one dimension, got {}; reshape(x, {{1}}) has one", x);
  Engine* const engine = EngineAccess::of(world);
  const Tensor own = copy_on(moving_device(engine, "all_gather", x), x);
  if (engine == nullptr) return own;
  Shape shape = x.shape();
  shape[0] *= world.size();
  const Tensor all = empty_on(own.device(), shape, x.dtype());
  wait(*engine, begin_all_gather(*engine, own, all, ""));
  return ops::to_device(all, x.device());
}

Tensor reduce_scatter_now(const Tensor& x, const Communicator& world, ReduceOp op) {
  check_reducible("reduce_scatter", x, op);
  check<ShapeError>(x.rank() >= 1 && x.size(0) % world.size() == 0,
                    "reduce_scatter: the first dimension must be divisible by the {} ranks, got {}",
                    world.size(), x);
  Engine* const engine = EngineAccess::of(world);
  const Tensor all = copy_on(moving_device(engine, "reduce_scatter", x), x);
  if (engine == nullptr) return all;
  Shape shape = x.shape();
  shape[0] /= world.size();
  const Tensor own = empty_on(all.device(), shape, x.dtype());
  wait(*engine,
       begin(*engine, "reduce_scatter", call_text("reduce_scatter", x, name(op), ""), bytes_of(all),
             {all, own},
             [from = all.raw(), to = own.raw(), count = own.numel(), dtype = own.dtype(),
              op](Collectives& collectives) { collectives.reduce_scatter(from, to, count, dtype, op); }));
  return ops::to_device(own, x.device());
}

Tensor broadcast_now(const Tensor& x, const Communicator& world, int root) {
  check_rank("broadcast", world, root);
  Engine* const engine = EngineAccess::of(world);
  const Tensor y = copy_on(moving_device(engine, "broadcast", x), x);
  if (engine != nullptr) wait(*engine, begin_broadcast(*engine, y, root, ""));
  return ops::to_device(y, x.device());
}

/// Begins a call that changes the elements of `x`, which is row-major.
Call begin_in_place(Engine& engine, const char* op, const Tensor& x, const std::string& what,
                    const std::function<void(Collectives&, const Tensor&)>& call) {
  const Device device = moving_device(&engine, op, x);
  const Tensor moved = ops::to_device(x, device);
  Call begun = begin(engine, op, what, bytes_of(moved), {moved},
                     [moved, call](Collectives& collectives) { call(collectives, moved); });
  if (device == x.device()) return begun;
  wait(engine, begun);
  ops::copy_into(x, moved);
  return begun;
}

/// What goes before a tensor's elements from rank to rank.
struct Header {
  int64_t dtype = 0;
  int64_t rank = 0;
  std::array<int64_t, most_dimensions> sizes{};
};

}  // namespace

std::string_view name(ReduceOp op) {
  constexpr std::string_view names[] = {"sum", "mean", "min", "max"};
  return names[static_cast<std::size_t>(op)];
}

void check_reducible(const char* op, const Tensor& x, ReduceOp how) {
  check<DTypeError>(how != ReduceOp::mean || is_floating(x.dtype()),
                    "{}: a mean is of floating elements, got {}; convert it with to(float32)", op, x);
  check<DTypeError>(how != ReduceOp::sum || x.dtype() != boolean,
                    "{}: a sum of bool is a number; convert it with to(int64), or take max for \"or\"", op);
}

std::string call_text(const char* op, const Tensor& x, std::string_view how, const std::string& purpose) {
  return fmt::format("{}{}{}{} of {} {}{}{}", op, how.empty() ? "" : "(", how, how.empty() ? "" : ")",
                     x.shape(), x.dtype(), purpose.empty() ? "" : ", ", purpose);
}

Device moving_device(const Engine* engine, const char* op, const Tensor& x) {
  if (engine == nullptr) return x.device();
  if (x.device().is_cpu() || !engine->has_nccl()) return Device{};
  check<DeviceError>(x.device() == engine->device(),
                     "{}: the GPU of this rank is {}, which Communicator::device() gives; got {}", op,
                     engine->device(), x);
  return x.device();
}

void wait(const Engine& engine, const Call& call) {
  engine.wait(call.made);
  if (call.done) cuda::current_stream(call.done->device()).wait(*call.done);
}

Call begin_all_reduce(Engine& engine, const Tensor& x, ReduceOp op, const std::string& purpose) {
  return begin_in_place(engine, "all_reduce", x, call_text("all_reduce", x, name(op), purpose),
                        [op](Collectives& collectives, const Tensor& moved) {
                          collectives.all_reduce(moved.raw(), moved.numel(), moved.dtype(), op);
                        });
}

Call begin_all_gather(Engine& engine, const Tensor& own, const Tensor& all, const std::string& purpose) {
  return begin(engine, "all_gather", call_text("all_gather", own, "", purpose), bytes_of(own), {own, all},
               [from = own.raw(), to = all.raw(), bytes = bytes_of(own)](Collectives& collectives) {
                 collectives.all_gather(from, to, bytes);
               });
}

Call begin_broadcast(Engine& engine, const Tensor& x, int root, const std::string& purpose) {
  return begin_in_place(engine, "broadcast", x,
                        call_text("broadcast", x, fmt::format("from rank {}", root), purpose),
                        [root](Collectives& collectives, const Tensor& moved) {
                          collectives.broadcast(moved.raw(), bytes_of(moved), root);
                        });
}

Tensor all_reduce(const Tensor& x, const Communicator& world, ReduceOp op) {
  check_differentiable("all_reduce", x, op);
  return record("all_reduce", all_reduce_now(x, world, op), {x},
                [world, op](const Tensor& dy) -> Grads { return {all_reduce(dy, world, op)}; });
}

void all_reduce_(const Tensor& x, const Communicator& world, ReduceOp op) {
  ops::copy_into(x, all_reduce_now(x, world, op));
}

Tensor all_gather(const Tensor& x, const Communicator& world) {
  return record("all_gather", all_gather_now(x, world), {x},
                [world](const Tensor& dy) -> Grads { return {reduce_scatter(dy, world)}; });
}

Tensor reduce_scatter(const Tensor& x, const Communicator& world, ReduceOp op) {
  check_differentiable("reduce_scatter", x, op);
  return record("reduce_scatter", reduce_scatter_now(x, world, op), {x},
                [world, op](const Tensor& dy) -> Grads {
                  const Tensor all = all_gather(dy, world);
                  return {op == ReduceOp::mean ? all / world.size() : all};
                });
}

Tensor broadcast(const Tensor& x, const Communicator& world, int root) {
  return record("broadcast", broadcast_now(x, world, root), {x}, [world, root](const Tensor& dy) -> Grads {
    const Tensor all = all_reduce(dy, world);
    return {world.rank() == root ? all : all * 0};
  });
}

void broadcast_(const Tensor& x, const Communicator& world, int root) {
  ops::copy_into(x, broadcast_now(x, world, root));
}

void send(const Tensor& x, const Communicator& world, int to) {
  check_rank("send", world, to);
  check<ValueError>(to != world.rank(), "send: rank {} is this process itself", to);
  check<ShapeError>(x.rank() <= std::ssize(Header().sizes), "send: takes up to {} dimensions, got {}",
                    most_dimensions, x.rank());
  Engine& engine = *EngineAccess::of(world);
  const Tensor copy = copy_on(Device{}, x);
  const auto header = std::make_shared<Header>();
  header->dtype = static_cast<int64_t>(x.dtype());
  header->rank = x.rank();
  std::copy(x.shape().begin(), x.shape().end(), header->sizes.begin());
  engine.wait(engine.submit_transfer(
      fmt::format("send to rank {} of {}", to, x), [header, copy, to](Transport& transport) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(header.get());
        transport.send(bytes, sizeof(Header), to, header);
        transport.send(copy.raw(), bytes_of(copy), to, copy.shared_impl());
      }));
}

Tensor recv(const Communicator& world, int from, Device device) {
  check_rank("recv", world, from);
  check<ValueError>(from != world.rank(), "recv: rank {} is this process itself", from);
  Engine& engine = *EngineAccess::of(world);
  const std::string what = fmt::format("recv from rank {}", from);
  const auto header = std::make_shared<Header>();
  engine.wait(engine.submit_transfer(what, [header, from](Transport& transport) {
    transport.begin_receive(reinterpret_cast<std::byte*>(header.get()), sizeof(Header), from);
  }));
  const Tensor x = empty_on(Device{}, Shape(header->sizes.begin(), header->sizes.begin() + header->rank),
                            static_cast<DType>(header->dtype));
  engine.wait(engine.submit_transfer(
      what, [x, from](Transport& transport) { transport.begin_receive(x.raw(), bytes_of(x), from); }));
  return ops::to_device(x, device);
}

void barrier(const Communicator& world) {
  if (Engine* const engine = EngineAccess::of(world))
    engine->wait(engine->submit("barrier", [](Transport&) {}));
}

std::vector<Tensor> all_gather_lists(const Tensor& x, const Communicator& world) {
  const NoGrad guard;
  check<ShapeError>(x.rank() == 1, "all_gather_lists: needs one dimension, got {}; flatten(x) has one", x);
  const std::vector<int64_t> counts =
      all_gather(full({1}, x.numel(), {.dtype = int64, .device = Device{}}), world).to_vector<int64_t>();
  const int64_t longest = *std::ranges::max_element(counts);
  const Tensor padded = zeros({longest}, {.dtype = x.dtype(), .device = Device{}});
  ops::copy_into(narrow(padded, 0, 0, x.numel()), x.detach());
  const Tensor all = longest == 0 ? padded : all_gather(padded, world);
  std::vector<Tensor> lists;
  for (const int64_t count : counts)
    lists.push_back(narrow(all, 0, static_cast<int64_t>(lists.size()) * longest, count));
  return lists;
}

}  // namespace pleat::dist
