// Private header: not installed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// What a function changes that was there before it, noted while this thread runs it: storages, of which the
/// elements are kept as they were at the first write, and counters (of generators). Who has to run the
/// function once more (checkpoint()) lets it begin where it began at first, and undoes its changes then.
class Journal {
 public:
  /// Notes from now on. Several nest.
  Journal();
  ~Journal() { stop(); }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Notes no more; to be called of the innermost one.
  void stop();
  bool has_elements_of(const Tensor& tensor) const;

  /// Brings back what `then`, which has stopped, has kept: elements now, counters when they are used first.
  void begin_as(const Journal& then);
  /// Stops, and puts all back as it was when it was noted.
  void undo();

  /// To be called before elements or counters are changed, and when counters end.
  static void note(const std::shared_ptr<Storage>& storage);
  static void note(std::span<uint64_t> counters);
  static void forget(std::span<const uint64_t> counters);

 private:
  struct Elements {
    std::shared_ptr<Storage> storage;
    Tensor were;  ///< [bytes] uint8
    uint64_t version, taped_at, taped_by;
  };
  struct Counters {
    std::span<uint64_t> counters;
    std::vector<uint64_t> were;
    bool are(std::span<const uint64_t> others) const { return counters.data() == others.data(); }
  };

  void note_elements(const std::shared_ptr<Storage>& storage);
  void note_counters(std::span<uint64_t> counters);

  uint64_t since_;  ///< storages of a later version are new, or noted
  Journal* outer_;
  bool notes_ = true;
  std::vector<Elements> elements_;
  std::vector<Counters> counters_;
  std::vector<Counters> to_begin_with_;
};

}  // namespace pleat
