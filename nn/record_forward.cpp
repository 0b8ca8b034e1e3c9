#include "pleat/nn/record_forward.h"

#include <optional>
#include <string>
#include <unordered_map>

#include "pleat/core/base/error.h"
#include "pleat/core/base/record_function.h"
#include "pleat/nn/listing.h"
#include "pleat/nn/module.h"

namespace pleat::nn {

/// The data of a call while an observer is set. The outermost call has the names of all modules
/// inside.
class RecordForward::Call {
 public:
  Call(const Module& module, std::span<const Tensor* const> inputs) {
    if (names == nullptr) {
      names = &own_names_;
      learn_names(module);
    }
    const auto known = names->find(&module);
    if (known != names->end())
      range_.emplace(known->second.type, known->second.path, inputs);
    else
      range_.emplace(module.type_name(), std::string(), inputs);
  }
  ~Call() {
    if (names == &own_names_) names = nullptr;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  struct Name {
    std::string type, path;
  };

  void learn_names(const Module& outermost) {
    try {
      // members() changes nothing, so the module may be const.
      for (const auto& [path, module] : const_cast<Module&>(outermost).named_modules())
        own_names_.emplace(module, Name{module->type_name(), path});
    } catch (const ValueError&) {
      // Members with bad names: a call must not fail only because it is observed.
    }
  }

  static thread_local const std::unordered_map<const Module*, Name>* names;
  std::unordered_map<const Module*, Name> own_names_;  ///< of the outermost call
  std::optional<RecordModule> range_;
};

thread_local const std::unordered_map<const Module*, RecordForward::Call::Name>* RecordForward::Call::names =
    nullptr;

constinit thread_local const RecordForward* RecordForward::running_ = nullptr;

RecordForward::RecordForward(const Module& module, std::span<const Tensor* const> inputs)
    : module_(module), caller_(running_) {
  detail::Listing::check_not_moved_from(module);
  detail::Listing::begin(*this);
  if (is_recording()) [[unlikely]]
    call_ = std::make_unique<Call>(module, inputs);
  running_ = this;
}

RecordForward::~RecordForward() { running_ = caller_; }

}  // namespace pleat::nn
