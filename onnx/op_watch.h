// Private header: not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::onnx {

/// Sees what raw functions (core/base/record_function.h) do with the tensors of a trace while it exists, in
/// its thread. A tensor that the trace does not know is a constant, as `zeros` makes them, unless it was made
/// or changed by a function that read one of the trace: that function is not traced, and this knows its name.
class OpWatch {
 public:
  /// `depends`: whether a tensor depends on the trace's inputs or state.
  explicit OpWatch(std::function<bool(const Tensor&)> depends);
  ~OpWatch();
  OpWatch(const OpWatch&) = delete;
  OpWatch& operator=(const OpWatch&) = delete;

  /// A call was reported: what is open around it is made of such calls.
  void saw_call();
  /// How many raw functions are running.
  std::size_t depth() const { return open_.size(); }
  /// Whether the program has read elements of a tensor that depends on the trace.
  bool reads_numbers() const { return reads_numbers_; }
  /// The function that made or changed a tensor that no call has reported.
  std::optional<std::string> maker_of(const Tensor& tensor) const;

  // For the listener.
  void begin(std::string_view name, std::span<const Tensor* const> inputs);
  void end();

 private:
  struct Frame {
    std::string name;
    uint64_t first_id;  ///< tensors made in it have this id or a larger one
    bool reads = false;
    bool composed = false;
    struct Input {
      Tensor tensor;
      uint64_t version;
      bool depends;
    };
    std::vector<Input> inputs;
  };
  struct Made {
    uint64_t first_id, end_id;
    std::string name;
  };
  struct Changed {
    std::shared_ptr<Storage> storage;
    std::string name;
  };

  std::function<bool(const Tensor&)> depends_;
  bool reads_numbers_ = false;
  std::vector<Frame> open_;
  std::vector<Made> made_;
  std::vector<Changed> changed_;
};

/// The id that the next tensor gets, or a larger one.
uint64_t next_tensor_id();

}  // namespace pleat::onnx
