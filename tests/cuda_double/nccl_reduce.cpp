#include "nccl_reduce.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "number.h"

namespace cuda_double {
namespace {

template <class T>
T combined(ncclRedOp_t op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == ncclMin) return std::fmin(a, b);
    if (op == ncclMax) return std::fmax(a, b);
    return op == ncclProd ? a * b : a + b;
  } else {
    if (op == ncclMin) return std::min(a, b);
    if (op == ncclMax) return std::max(a, b);
    // Integers wrap.
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(op == ncclProd ? x * y : x + y);
  }
}

/// `read(memory, i)` gives a number to compute with, `write(i, number)` rounds it to the type.
template <class Read, class Write>
void reduce_by(ncclRedOp_t op, std::size_t count, std::span<const std::vector<std::byte>> of_ranks,
               const Read& read, const Write& write) {
  for (std::size_t i = 0; i < count; ++i) {
    auto value = read(of_ranks.front().data(), i);
    for (const std::vector<std::byte>& other : of_ranks.subspan(1))
      value = combined(op, value, read(other.data(), i));
    if (op == ncclAvg)
      value = static_cast<decltype(value)>(value / static_cast<decltype(value)>(of_ranks.size()));
    write(i, value);
  }
}

template <class T>
void reduce_as(ncclRedOp_t op, std::size_t count, std::span<const std::vector<std::byte>> of_ranks,
               void* result) {
  const auto read = [](const std::byte* memory, std::size_t i) {
    T value;
    std::memcpy(&value, memory + i * sizeof(T), sizeof(T));
    return value;
  };
  const auto write = [result](std::size_t i, T value) {
    std::memcpy(static_cast<std::byte*>(result) + i * sizeof(T), &value, sizeof(T));
  };
  reduce_by(op, count, of_ranks, read, write);
}

void reduce_halves(Type type, ncclRedOp_t op, std::size_t count,
                   std::span<const std::vector<std::byte>> of_ranks, void* result) {
  const auto read = [type](const std::byte* memory, std::size_t i) {
    return static_cast<float>(read_number(type, memory, static_cast<int64_t>(i)));
  };
  const auto write = [type, result](std::size_t i, float value) {
    write_number(type, result, static_cast<int64_t>(i), static_cast<double>(value));
  };
  reduce_by(op, count, of_ranks, read, write);
}

bool is_floating(ncclDataType_t type) {
  return type == ncclFloat16 || type == ncclBfloat16 || type == ncclFloat32 || type == ncclFloat64;
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

const char* name_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return "int8";
    case ncclUint8:
      return "uint8";
    case ncclInt32:
      return "int32";
    case ncclUint32:
      return "uint32";
    case ncclInt64:
      return "int64";
    case ncclUint64:
      return "uint64";
    case ncclFloat16:
      return "float16";
    case ncclBfloat16:
      return "bfloat16";
    case ncclFloat32:
      return "float32";
    case ncclFloat64:
      return "float64";
    default:
      return "another type";
  }
}

const char* name_of(ncclRedOp_t op) {
  switch (op) {
    case ncclSum:
      return "sum";
    case ncclProd:
      return "product";
    case ncclMax:
      return "max";
    case ncclMin:
      return "min";
    case ncclAvg:
      return "average";
    default:
      return "another operation";
  }
}

bool has_reduction(ncclDataType_t type, ncclRedOp_t op) {
  return bytes_of(type) > 0 && op >= ncclSum && op < ncclNumOps && (op != ncclAvg || is_floating(type));
}

void reduce(ncclDataType_t type, ncclRedOp_t op, std::size_t count,
            std::span<const std::vector<std::byte>> of_ranks, void* result) {
  switch (type) {
    case ncclInt8:
      return reduce_as<int8_t>(op, count, of_ranks, result);
    case ncclUint8:
      return reduce_as<uint8_t>(op, count, of_ranks, result);
    case ncclInt32:
      return reduce_as<int32_t>(op, count, of_ranks, result);
    case ncclUint32:
      return reduce_as<uint32_t>(op, count, of_ranks, result);
    case ncclInt64:
      return reduce_as<int64_t>(op, count, of_ranks, result);
    case ncclUint64:
      return reduce_as<uint64_t>(op, count, of_ranks, result);
    case ncclFloat32:
      return reduce_as<float>(op, count, of_ranks, result);
    case ncclFloat64:
      return reduce_as<double>(op, count, of_ranks, result);
    case ncclFloat16:
      return reduce_halves(Type::f16, op, count, of_ranks, result);
    case ncclBfloat16:
      return reduce_halves(Type::bf16, op, count, of_ranks, result);
    default:
      return;
  }
}

}  // namespace cuda_double
