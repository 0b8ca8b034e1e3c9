#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pleat/nn/module.h"
#include "pleat/nn/state_dict.h"

namespace pleat::train {

struct TransferOptions {
  /// Beginnings of names in the state and what they become: {{"backbone.", "body."}}. The first that
  /// fits is used; "" fits all names.
  std::vector<std::pair<std::string, std::string>> rename = {};
};

/// What became of each tensor, by the network's names; those that it does not have by the state's.
struct TransferReport {
  std::vector<std::string> copied;
  std::vector<std::string> other_shape;  ///< "head.weight: [10, 64] in the network, [1000, 64] in the state"
  std::vector<std::string> missing;      ///< of the network, but not in the state
  std::vector<std::string> unexpected;   ///< in the state, but not of the network

  /// For each kind how many, with the names of those that were not copied, one a line.
  std::string text() const;
};

/// Copies the tensors whose name and shape the network has, as for fine-tuning: a new head keeps its
/// first weights. Types are converted. Throws ValueError when nothing fits, or when two names become
/// one.
TransferReport transfer(nn::Module& net, const nn::StateDict& state, const TransferOptions& options = {});

}  // namespace pleat::train
