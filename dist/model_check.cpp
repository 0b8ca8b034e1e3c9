#include "pleat/dist/model_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/dist/collectives.h"

namespace pleat::dist {
namespace {

/// A line for each tensor.
std::vector<std::string> lines_of(nn::Module& net) {
  std::vector<std::string> lines;
  for (const auto& [name, param] : net.named_parameters())
    lines.push_back(fmt::format("parameter {}: {} {}{}, strides {}", name, param.shape(), param.dtype(),
                                param.requires_grad() ? "" : ", frozen", param.strides()));
  for (const auto& [name, buffer] : net.named_buffers())
    lines.push_back(fmt::format("buffer {}: {} {}", name, buffer.shape(), buffer.dtype()));
  return lines;
}

Tensor bytes_of(const std::string& text) {
  return from_vector(std::vector<uint8_t>(text.begin(), text.end()), text.size(), Device{});
}
std::string text_in(const Tensor& bytes) {
  const std::vector<uint8_t> values = bytes.to_vector<uint8_t>();
  return {values.begin(), values.end()};
}

/// The text of rank 0, on all ranks.
std::string text_of_main(const std::string& text, const Communicator& world) {
  const auto length = broadcast(scalar(std::ssize(text), int64), world).item<int64_t>();
  std::string padded = text;
  padded.resize(static_cast<std::size_t>(length));
  return text_in(broadcast(bytes_of(padded), world));
}

/// The texts of all ranks.
std::vector<std::string> texts_of_all(std::string text, const Communicator& world) {
  const auto length = all_reduce(scalar(std::ssize(text), int64), world, ReduceOp::max).item<int64_t>();
  text.resize(static_cast<std::size_t>(length), '\0');
  const std::string all = text_in(all_gather(bytes_of(text), world));
  std::vector<std::string> texts;
  for (int rank = 0; rank < world.size(); ++rank)
    texts.emplace_back(
        all.substr(static_cast<std::size_t>(rank * length), static_cast<std::size_t>(length)).c_str());
  return texts;
}

}  // namespace

void check_same_model(nn::Module& net, const Communicator& world) {
  const std::vector<std::string> own = lines_of(net);
  std::string text;
  for (const std::string& line : own) text += line + "\n";
  const std::string main = text_of_main(text, world);
  std::string difference;
  if (main != text) {
    // The first line in which they differ.
    std::size_t start = 0;
    for (const std::string& line : own) {
      if (main.compare(start, line.size() + 1, line + "\n") != 0) {
        difference = line;
        break;
      }
      start += line.size() + 1;
    }
    const std::string of_main =
        start < main.size() ? main.substr(start, main.find('\n', start) - start) : "no more";
    difference = fmt::format("rank {} has {}, rank 0 has {}", world.rank(),
                             difference.empty() ? "no more" : difference, of_main);
  }
  std::string message;
  for (const std::string& of_rank : texts_of_all(difference, world))
    if (!of_rank.empty()) message += "\n  " + of_rank;
  check<DistError>(message.empty(),
                   "DataParallel: the networks of the ranks differ:{}\nAll ranks must make the same network",
                   message);
}

}  // namespace pleat::dist
