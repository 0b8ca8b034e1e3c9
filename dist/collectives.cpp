#include "pleat/dist/collectives.h"

#include <algorithm>
#include <array>
#include <future>
#include <string>
#include <utility>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/dist/raw_collectives.h"

namespace pleat::dist {
namespace {

constexpr std::size_t most_dimensions = 30;

Tensor host_empty(Shape shape, DType dtype) {
  return empty(std::move(shape), {.dtype = dtype, .device = Device{}});
}
/// A row-major copy on the CPU, off the tape.
Tensor host_copy(const Tensor& x) {
  const Tensor copy = host_empty(x.shape(), x.dtype());
  ops::copy_into(copy, x);
  return copy;
}

void check_rank(const char* op, const Communicator& world, int rank) {
  check<IndexError>(rank >= 0 && rank < world.size(), "{}: there is no rank {}; there are {}, from 0", op,
                    rank, world.size());
}

void wait(const Engine& engine, const std::shared_future<void>& call) { engine.wait(call); }

bool on_tape(const Tensor& x) { return grad_enabled() && x.requires_grad(); }

void check_differentiable(const char* op, const Tensor& x, ReduceOp how) {
  check<AutogradError>(how == ReduceOp::sum || how == ReduceOp::mean || !on_tape(x),
                       "{}: a {} has no gradient; give it x.detach(), or take the sum or mean", op,
                       name(how));
}

Tensor all_reduce_now(const Tensor& x, const Communicator& world, ReduceOp op) {
  check_reducible("all_reduce", x, op);
  const Tensor y = host_copy(x);
  if (Engine* const engine = EngineAccess::of(world)) wait(*engine, begin_all_reduce(*engine, y, op, ""));
  return ops::to_device(y, x.device());
}

Tensor all_gather_now(const Tensor& x, const Communicator& world) {
  check<ShapeError>(x.rank() >= 1,
                    "all_gather: needs at least one dimension, got {}; reshape(x, {{1}}) has one", x);
  const Tensor own = host_copy(x);
  Engine* const engine = EngineAccess::of(world);
  if (engine == nullptr) return ops::to_device(own, x.device());
  Shape shape = x.shape();
  shape[0] *= world.size();
  const Tensor all = host_empty(shape, x.dtype());
  const int64_t bytes = own.numel() * size_of(own.dtype());
  wait(*engine, engine->submit(call_text("all_gather", x, "", ""), [own, all, bytes](Transport& transport) {
    const RecordFunction range("all_gather");
    transport.all_gather(own.raw(), all.raw(), bytes);
  }));
  return ops::to_device(all, x.device());
}

Tensor reduce_scatter_now(const Tensor& x, const Communicator& world, ReduceOp op) {
  check_reducible("reduce_scatter", x, op);
  check<ShapeError>(x.rank() >= 1 && x.size(0) % world.size() == 0,
                    "reduce_scatter: the first dimension must be divisible by the {} ranks, got {}",
                    world.size(), x);
  const Tensor all = host_copy(x);
  Engine* const engine = EngineAccess::of(world);
  if (engine == nullptr) return ops::to_device(all, x.device());
  Shape shape = x.shape();
  shape[0] /= world.size();
  const Tensor own = host_empty(shape, x.dtype());
  wait(*engine,
       engine->submit(call_text("reduce_scatter", x, name(op), ""), [own, all, op](Transport& transport) {
         const RecordFunction range("reduce_scatter");
         transport.reduce_scatter(all.raw(), own.raw(), own.numel(), own.dtype(), op);
       }));
  return ops::to_device(own, x.device());
}

Tensor broadcast_now(const Tensor& x, const Communicator& world, int root) {
  check_rank("broadcast", world, root);
  const Tensor y = host_copy(x);
  if (Engine* const engine = EngineAccess::of(world)) wait(*engine, begin_broadcast(*engine, y, root, ""));
  return ops::to_device(y, x.device());
}

/// Begins a call that changes the elements of `x`: `move(transport, x)`. Those on a GPU go through the CPU,
/// for which it waits.
template <class F>
std::shared_future<void> begin_in_place(Engine& engine, const Tensor& x, std::string what, const F& move) {
  const Tensor host = ops::to_device(x, Device{});
  std::shared_future<void> call =
      engine.submit(std::move(what), [host, move](Transport& transport) { move(transport, host); });
  if (x.device().is_cpu()) return call;
  engine.wait(call);
  ops::copy_into(x, host);
  return call;
}

/// What goes before a tensor's elements from rank to rank.
struct Header {
  int64_t dtype = 0;
  int64_t rank = 0;
  std::array<int64_t, most_dimensions> sizes{};
};

}  // namespace

std::string_view name(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::mean:
      return "mean";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
  }
  return "?";
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

std::shared_future<void> begin_all_reduce(Engine& engine, const Tensor& x, ReduceOp op,
                                          const std::string& purpose) {
  return begin_in_place(engine, x, call_text("all_reduce", x, name(op), purpose),
                        [op](Transport& transport, const Tensor& host) {
                          const RecordFunction range("all_reduce");
                          transport.all_reduce(host.raw(), host.numel(), host.dtype(), op);
                        });
}

std::shared_future<void> begin_broadcast(Engine& engine, const Tensor& x, int root,
                                         const std::string& purpose) {
  return begin_in_place(engine, x, call_text("broadcast", x, fmt::format("from rank {}", root), purpose),
                        [root](Transport& transport, const Tensor& host) {
                          const RecordFunction range("broadcast");
                          transport.broadcast(host.raw(), host.numel() * size_of(host.dtype()), root);
                        });
}

Tensor all_reduce(const Tensor& x, const Communicator& world, ReduceOp op) {
  check_differentiable("all_reduce", x, op);
  return record("all_reduce", all_reduce_now(x, world, op), {x},
                [world, op](const Tensor& dy) -> Grads { return {all_reduce(dy, world, op)}; });
}

void all_reduce_(const Tensor& x, const Communicator& world, ReduceOp op) {
  ops::copy_into(x, all_reduce_now(x, world, op));
  x.bump_version();
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
  x.bump_version();
}

void send(const Tensor& x, const Communicator& world, int to) {
  check_rank("send", world, to);
  check<ValueError>(to != world.rank(), "send: rank {} is this process itself", to);
  check<ShapeError>(x.rank() <= std::ssize(Header().sizes), "send: takes up to {} dimensions, got {}",
                    most_dimensions, x.rank());
  Engine& engine = *EngineAccess::of(world);
  const Tensor copy = host_copy(x);
  const auto header = std::make_shared<Header>();
  header->dtype = static_cast<int64_t>(x.dtype());
  header->rank = x.rank();
  std::copy(x.shape().begin(), x.shape().end(), header->sizes.begin());
  wait(engine, engine.submit_transfer(
                   fmt::format("send to rank {} of {}", to, x), [header, copy, to](Transport& transport) {
                     const auto* const bytes = reinterpret_cast<const std::byte*>(header.get());
                     transport.send(bytes, sizeof(Header), to, header);
                     transport.send(copy.raw(), copy.numel() * size_of(copy.dtype()), to, copy.shared_impl());
                   }));
}

Tensor recv(const Communicator& world, int from, Device device) {
  check_rank("recv", world, from);
  check<ValueError>(from != world.rank(), "recv: rank {} is this process itself", from);
  Engine& engine = *EngineAccess::of(world);
  const std::string what = fmt::format("recv from rank {}", from);
  const auto header = std::make_shared<Header>();
  wait(engine, engine.submit_transfer(what, [header, from](Transport& transport) {
    transport.begin_receive(reinterpret_cast<std::byte*>(header.get()), sizeof(Header), from);
  }));
  const Tensor x = host_empty(Shape(header->sizes.begin(), header->sizes.begin() + header->rank),
                              static_cast<DType>(header->dtype));
  wait(engine, engine.submit_transfer(what, [x, from](Transport& transport) {
    transport.begin_receive(x.raw(), x.numel() * size_of(x.dtype()), from);
  }));
  return ops::to_device(x, device);
}

void barrier(const Communicator& world) {
  if (Engine* const engine = EngineAccess::of(world))
    wait(*engine, engine->submit("barrier", [](Transport&) {}));
}

}  // namespace pleat::dist
