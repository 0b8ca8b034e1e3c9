#include "pleat/train/transfer.h"

#include "pleat/core/base/format.h"

namespace pleat::train {
namespace {

std::string renamed(const std::string& name, const TransferOptions& options) {
  for (const auto& [from, to] : options.rename)
    if (name.starts_with(from)) return to + name.substr(from.size());
  return name;
}

std::string line(const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string text = fmt::format("{:<12} {}:\n", title, names.size());
  for (const std::string& name : names) text += "  " + name + '\n';
  return text;
}

}  // namespace

std::string TransferReport::text() const {
  return fmt::format("{:<12} {}\n", "copied", copied.size()) + line("other shape", other_shape) +
         line("missing", missing) + line("unexpected", unexpected);
}

TransferReport transfer(nn::Module& net, const nn::StateDict& state, const TransferOptions& options) {
  nn::StateDict from;
  for (const auto& [name, tensor] : state)
    check<ValueError>(from.emplace(renamed(name, options), tensor).second,
                      "transfer: two tensors of the state become {}", renamed(name, options));
  TransferReport report;
  const nn::StateDict all = from;
  nn::StateDict own, matching;
  for (const auto& [name, tensor] : net.state_dict()) {
    const auto found = from.find(name);
    if (found == from.end()) {
      report.missing.push_back(name);
    } else if (found->second.shape() != tensor.shape()) {
      report.other_shape.push_back(fmt::format("{}: {} in the network, {} in the state", name,
                                               to_string(tensor.shape()), to_string(found->second.shape())));
      from.erase(found);
    } else {
      report.copied.push_back(name);
      own.emplace(name, tensor);
      matching.emplace(name, found->second);
      from.erase(found);
    }
  }
  for (const auto& [name, tensor] : from) report.unexpected.push_back(name);
  if (report.copied.empty())
    nn::copy_state("transfer", net.state_dict(), all);  // which fails, and says what does not fit
  else
    nn::copy_state("transfer", own, matching);
  return report;
}

}  // namespace pleat::train
