#include <algorithm>

#include "pleat/bench/ask/questions.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask::unfold_speed {
namespace {

constexpr int64_t channels = 10, height = 50, filters_out = 15, kernel = 3, margin = 1;
const std::vector<std::string> passes = {"inference", "forward, recorded", "backward"};
const std::string conv2d_by = "conv2d, ";  ///< and an implementation: a way
const std::vector<std::string> pieces = {"unfold", "product", "fold"};
const std::string piece_passes[] = {"forward", "backward (between hooks)"};

struct Operands {
  Tensor x, filters;

  Operands(int64_t batch, Device device) {
    manual_seed(1);
    x = randn({batch, channels, height, height}, {.device = device}).set_requires_grad();
    filters = (randn({filters_out, channels * kernel * kernel}, {.device = device}) * 0.1)
                  .detach()
                  .set_requires_grad();
  }
};

std::string problem_of(int64_t batch) { return fmt::format("batch {}", batch); }

/// By an implementation of conv2d; without a name, by hand.
Tensor convolve(const Operands& o, const std::string& name) {
  if (name.empty()) return conv_by_hand(o.x, o.filters, kernel, margin);
  return conv2d(o.x, reshape(o.filters, {filters_out, channels, kernel, kernel}),
                {.padding = margin, .implementation = name});
}

/// Backward alone is timed as often as it can run: the graph is kept.
void time_batch(const AskOptions& options, const Operands& o, const std::string& problem, Times& times) {
  std::vector<std::string> names = fast_implementations(options.device);
  names.emplace_back();
  std::vector<Work> all;
  for (const std::string& name : names) {
    const std::string way = name.empty() ? by_hand : conv2d_by + name;
    const Tensor y = convolve(o, name);
    const Tensor dy = gradient_for(y);
    all.push_back({problem, way, passes[0], [=] { (void)no_grad([&] { return convolve(o, name); }); }});
    all.push_back({problem, way, passes[1], [=] { (void)convolve(o, name); }});
    all.push_back({problem, way, passes[2], [=] {
                     (void)grad({y}, {o.x, o.filters}, {dy}, {.retain_graph = true});
                   }});
  }
  times.measure(options, all);
}

void time_pieces(const AskOptions& options, const Operands& o, const std::string& problem, Times& times) {
  {
    const NoGrad guard;
    const UnfoldOptions windows{.kernel_size = kernel, .padding = margin};
    const Tensor columns = unfold(o.x, windows), product = matmul(o.filters, columns);
    const std::function<Tensor()> forward[] = {[&] { return unfold(o.x, windows); },
                                               [&] { return matmul(o.filters, columns); },
                                               [&] {
                                                 return fold(product, {height, height}, {.kernel_size = 1});
                                               }};
    std::vector<Work> all;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      all.push_back({problem, pieces[i], piece_passes[0], [&, i] { (void)forward[i](); }});
    times.measure(options, all);
  }
  const Tensor dy = randn({o.x.size(0), filters_out, height, height}, {.device = o.x.device()});
  std::map<std::string, std::vector<double>> backward;
  for (int i = 0; i < (options.quick ? 4 : 12); ++i)
    for (const auto& [piece, seconds] : backward_pieces(o.x, o.filters, kernel, margin, dy))
      if (i > 0) backward[piece].push_back(seconds);  // the first allocates
  for (const std::string& piece : pieces)
    times.add({problem, piece, piece_passes[1], time_of(backward[piece])});
}

/// "product (65 %)": the piece that takes most of a pass.
std::string largest_piece(const Times& times, const std::string& problem, const std::string& pass) {
  double all = 0, most = 0;
  std::string largest;
  for (const std::string& piece : times.ways(problem)) {
    const double seconds = times.at(problem, piece, pass).median;
    all += seconds;
    if (seconds > most) most = seconds, largest = piece;
  }
  return fmt::format("{} ({:.0f} %)", largest, 100 * most / all);
}

}  // namespace

Tensor conv_by_hand(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding) {
  const Tensor columns = unfold(x, {.kernel_size = size, .padding = padding});
  const Shape output{x.size(2) + 2 * padding - size + 1, x.size(3) + 2 * padding - size + 1};
  return fold(matmul(filters, columns), output, {.kernel_size = 1});
}

std::map<std::string, double> backward_pieces(const Tensor& x, const Tensor& filters, int64_t size,
                                              int64_t padding, const Tensor& dy) {
  const auto clock = benchmark::device_clock(x.device());
  double folding = 0, multiplying = 0, unfolding = 0;
  const auto stamp = [&clock](double& when) {
    return [&clock, &when](const Tensor&) {
      when = clock->stop().wall;
      return Tensor();
    };
  };
  const Tensor columns = unfold(x, {.kernel_size = size, .padding = padding});
  const Tensor product = matmul(filters, columns);
  const Tensor y = fold(product, {dy.size(2), dy.size(3)}, {.kernel_size = 1});
  y.register_hook(stamp(folding));
  product.register_hook(stamp(multiplying));
  columns.register_hook(stamp(unfolding));
  clock->start();
  (void)grad({y}, {x, filters}, {dy});
  const double end = clock->stop().wall;
  return {{"unfold", end - unfolding}, {"product", unfolding - multiplying}, {"fold", multiplying - folding}};
}

std::vector<std::string> conclude(const Times& times) {
  std::vector<std::string> sentences, of_pieces;
  const auto compare = [&](const std::string& problem, const char* what,
                           const std::vector<std::string>& of_passes) {
    const std::string fastest = times.fastest(problem, of_passes, by_hand);
    sentences.push_back(fmt::format("{}, {}: {}.", capitalized(problem), what,
                                    comparison("the one by hand", times.total(problem, by_hand, of_passes),
                                               "conv2d (" + fastest.substr(conv2d_by.size()) + ')',
                                               times.total(problem, fastest, of_passes))));
  };
  for (const std::string& problem : times.problems())
    if (problem.starts_with(pieces_of)) {
      of_pieces.push_back(fmt::format(
          "Of what is written by hand, with {}, most of the forward time goes to {}, most of the backward "
          "time to {}.",
          problem.substr(pieces_of.size()), largest_piece(times, problem, piece_passes[0]),
          largest_piece(times, problem, piece_passes[1])));
    } else {
      compare(problem, "inference", {passes[0]});
      compare(problem, "training", {passes[1], passes[2]});
    }
  sentences.insert(sentences.end(), of_pieces.begin(), of_pieces.end());
  return sentences;
}

Answer ask(const AskOptions& options) {
  Answer answer{
      .setup = {fmt::format("Input [N, {}, {}, {}], {} filters of {}x{}, padding {}, float32. Backward "
                            "is that of input and filters.",
                            channels, height, height, filters_out, kernel, kernel, margin)}};
  if (options.device.is_cpu()) answer.setup.push_back("There is no cuDNN on a CPU to turn on and off.");
  Times& times = answer.times;
  std::vector<std::string> of_pieces;
  const std::vector<int64_t> batches =
      options.quick ? std::vector<int64_t>{2, 8} : std::vector<int64_t>{2, 256, 512};
  for (const int64_t batch : batches) {
    const Operands operands(batch, options.device);
    const std::string problem = problem_of(batch), by_piece = pieces_of + problem;
    time_batch(options, operands, problem, times);
    answer.tables.push_back(table(problem, times.rows({problem}),
                                  {times.column(passes[0]), times.column(passes[1]), times.column(passes[2]),
                                   times.column("training", {passes[1], passes[2]})}));
    time_pieces(options, operands, by_piece, times);
    of_pieces.push_back(table(by_piece, times.rows({by_piece}),
                              {times.column(piece_passes[0]), times.column(piece_passes[1])}));
  }
  answer.tables.insert(answer.tables.end(), of_pieces.begin(), of_pieces.end());
  answer.plot = bars(fmt::format("[{}, {}, {}, {}], {} filters of {}x{}", batches.back(), channels, height,
                                 height, filters_out, kernel, kernel),
                     options.device, times, [&](const Cell& cell) -> Place {
                       if (cell.problem != problem_of(batches.back())) return {};
                       return {{cell.pass, cell.way}};
                     });
  answer.conclusion = conclude(times);
  return answer;
}

}  // namespace pleat::bench::ask::unfold_speed
