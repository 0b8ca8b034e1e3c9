#include "pleat/bench/ask/unfold_speed.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "pleat/bench/ask/measure.h"
#include "pleat/bench/ask/picture.h"
#include "pleat/bench/machine.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask::unfold_speed {
namespace {

constexpr int64_t channels = 10, height = 50, filters_out = 15, kernel = 3, margin = 1;
const std::string by_hand = "by hand";

std::vector<int64_t> batches(const AskOptions& options) {
  return options.quick ? std::vector<int64_t>{2, 8} : std::vector<int64_t>{2, 256, 512};
}

double now(Device device) {
  if (device.is_cuda()) cuda::synchronize(device);
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Operands {
  Tensor x, filters, dy;

  Operands(int64_t batch, Device device) {
    manual_seed(1);
    x = randn({batch, channels, height, height}, {.device = device}).set_requires_grad();
    filters = (randn({filters_out, channels * kernel * kernel}, {.device = device}) * 0.1)
                  .detach()
                  .set_requires_grad();
    dy = randn({batch, filters_out, height, height}, {.device = device});
  }
};

Tensor convolve(const Operands& o, const std::string& way) {
  if (way == by_hand) return conv_by_hand(o.x, o.filters, kernel, margin);
  return conv2d(o.x, reshape(o.filters, {filters_out, channels, kernel, kernel}),
                {.padding = margin, .implementation = way});
}

/// Backward alone is timed as often as it can run: the graph is kept.
std::vector<Row> time_batch(const AskOptions& options, int64_t batch, Answer& answer) {
  const Operands o(batch, options.device);
  std::vector<std::string> names = fast_implementations(options.device);
  names.push_back(by_hand);
  std::vector<Way> ways;
  const auto label = [&](const std::string& name, const char* what) {
    return fmt::format("batch {}, {}, {}", batch, name, what);
  };
  for (const std::string& name : names) {
    ways.push_back({label(name, "inference"), [=] { (void)no_grad([&] { return convolve(o, name); }); }});
    ways.push_back({label(name, "forward"), [=] { (void)convolve(o, name); }});
    const Tensor y = convolve(o, name);
    const Tensor dy = ops::to_format(o.dy, y.memory_format());  // as the next layer would give it
    ways.push_back({label(name, "backward"), [=] {
                      (void)grad({y}, {o.x, o.filters}, {dy}, {.retain_graph = true});
                    }});
  }
  time_in_turns(options, ways, answer);
  std::vector<Row> rows;
  for (const std::string& name : names)
    rows.push_back({batch, name, time_of(answer, label(name, "inference")),
                    time_of(answer, label(name, "forward")), time_of(answer, label(name, "backward"))});
  return rows;
}

std::vector<PieceRow> time_pieces(const AskOptions& options, int64_t batch, Answer& answer) {
  const Operands o(batch, options.device);
  const auto label = [&](const std::string& piece, const char* pass) {
    return fmt::format("batch {}, by hand, {}, {}", batch, piece, pass);
  };
  {
    const NoGrad guard;
    const UnfoldOptions windows{.kernel_size = kernel, .padding = margin};
    const Tensor columns = unfold(o.x, windows);
    const Tensor product = matmul(o.filters, columns);
    time_in_turns(options,
                  {{label("unfold", "forward"), [&] { (void)unfold(o.x, windows); }},
                   {label("product", "forward"), [&] { (void)matmul(o.filters, columns); }},
                   {label("fold", "forward"),
                    [&] {
                      (void)fold(product, {height, height}, {.kernel_size = 1});
                    }}},
                  answer);
  }
  std::map<std::string, std::vector<double>> backward;
  for (int i = 0; i < (options.quick ? 4 : 12); ++i) {
    const Pieces pieces = backward_pieces(o.x, o.filters, kernel, margin, o.dy);
    if (i == 0) continue;  // it allocates
    backward["unfold"].push_back(pieces.unfold);
    backward["product"].push_back(pieces.product);
    backward["fold"].push_back(pieces.fold);
  }
  std::vector<PieceRow> rows;
  for (const std::string piece : {"unfold", "product", "fold"}) {
    answer.times.push_back({label(piece, "backward"), time_of(backward[piece])});
    rows.push_back({batch, piece, time_of(answer, label(piece, "forward")), answer.times.back().time});
  }
  return rows;
}

std::vector<Table> tables(const std::vector<Row>& rows, const std::vector<PieceRow>& pieces) {
  std::vector<Table> result;
  for (const Row& row : rows) {
    const std::string title = fmt::format("batch {}", row.batch);
    if (result.empty() || result.back().title != title)
      result.push_back({title, {"", "inference", "forward, recorded", "backward", "training"}, {}});
    const bool conv = row.way != by_hand;
    result.back().rows.push_back({conv ? "conv2d, " + row.way : "unfold, product, fold by hand",
                                  text(row.inference), text(row.forward), text(row.backward),
                                  text(joined(row.forward, row.backward))});
  }
  for (const PieceRow& piece : pieces) {
    const std::string title = fmt::format("by hand, piece by piece, batch {}", piece.batch);
    if (result.back().title != title)
      result.push_back({title, {"", "forward", "backward (between hooks)"}, {}});
    result.back().rows.push_back({piece.piece, text(piece.forward), text(piece.backward)});
  }
  return result;
}

plot::BarChart chart(const std::vector<Row>& rows, Device device) {
  const int64_t largest = rows.back().batch;
  plot::BarChart chart{.title = fmt::format("[{}, {}, {}, {}], {} filters of {}x{}", largest, channels,
                                            height, height, filters_out, kernel, kernel),
                       .subtitle = describe_machine(device, 0),
                       .axis = "time [ms]"};
  for (const Row& row : rows) {
    if (row.batch != largest) continue;
    const std::string series = row.way == by_hand ? "unfold, product, fold by hand" : "conv2d, " + row.way;
    add_bar(chart, "inference", series, row.inference);
    add_bar(chart, "forward, recorded", series, row.forward);
    add_bar(chart, "backward", series, row.backward);
  }
  return chart;
}

}  // namespace

Tensor conv_by_hand(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding) {
  const Tensor columns = unfold(x, {.kernel_size = size, .padding = padding});
  const Shape output{x.size(2) + 2 * padding - size + 1, x.size(3) + 2 * padding - size + 1};
  return fold(matmul(filters, columns), output, {.kernel_size = 1});
}

Pieces backward_pieces(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding,
                       const Tensor& dy) {
  const Device device = x.device();
  double folding = 0, multiplying = 0, unfolding = 0;
  const auto stamp = [device](double& when) {
    return [device, &when](const Tensor&) {
      when = now(device);
      return Tensor();
    };
  };
  const Tensor columns = unfold(x, {.kernel_size = size, .padding = padding});
  const Tensor product = matmul(filters, columns);
  const Tensor y = fold(product, {dy.size(2), dy.size(3)}, {.kernel_size = 1});
  y.register_hook(stamp(folding));
  product.register_hook(stamp(multiplying));
  columns.register_hook(stamp(unfolding));
  (void)grad({y}, {x, filters}, {dy});
  const double end = now(device);
  return {.unfold = end - unfolding, .product = unfolding - multiplying, .fold = multiplying - folding};
}

std::vector<std::string> conclude(const std::vector<Row>& rows, const std::vector<PieceRow>& pieces) {
  std::vector<std::string> sentences;
  for (const Row& hand : rows) {
    if (hand.way != by_hand) continue;
    const auto fastest = [&](const auto& time) {
      const Row* best = nullptr;
      for (const Row& row : rows)
        if (row.batch == hand.batch && row.way != by_hand &&
            (best == nullptr || time(row).median < time(*best).median))
          best = &row;
      return best;
    };
    const auto inference = [](const Row& row) { return row.inference; };
    const auto training = [](const Row& row) { return joined(row.forward, row.backward); };
    const Row& quick = *fastest(inference);
    const Row& trained = *fastest(training);
    sentences.push_back(fmt::format(
        "Batch {}, inference: {}.", hand.batch,
        comparison("the one by hand", hand.inference, "conv2d (" + quick.way + ")", quick.inference)));
    sentences.push_back(fmt::format(
        "Batch {}, training: {}.", hand.batch,
        comparison("the one by hand", training(hand), "conv2d (" + trained.way + ")", training(trained))));
  }
  for (std::size_t i = 0; i + 2 < pieces.size(); i += 3) {
    double forward = 0, backward = 0;
    const PieceRow *most_forward = &pieces[i], *most_backward = &pieces[i];
    for (std::size_t k = i; k < i + 3; ++k) {
      forward += pieces[k].forward.median;
      backward += pieces[k].backward.median;
      if (pieces[k].forward.median > most_forward->forward.median) most_forward = &pieces[k];
      if (pieces[k].backward.median > most_backward->backward.median) most_backward = &pieces[k];
    }
    sentences.push_back(
        fmt::format("Of what is written by hand, with batch {}, most of the forward time goes to {} ({}), "
                    "most of the backward time "
                    "to {} ({}).",
                    pieces[i].batch, most_forward->piece, percent(most_forward->forward.median, forward),
                    most_backward->piece, percent(most_backward->backward.median, backward)));
  }
  return sentences;
}

Answer ask(const AskOptions& options) {
  Answer answer{
      .setup = {fmt::format("Input [N, {}, {}, {}], {} filters of {}x{}, padding {}, float32. Backward "
                            "is that of input and filters.",
                            channels, height, height, filters_out, kernel, kernel, margin)}};
  if (options.device.is_cpu()) answer.setup.push_back("There is no cuDNN on a CPU to turn on and off.");
  if (options.quick) answer.setup.emplace_back(quick_note);
  std::vector<Row> rows;
  std::vector<PieceRow> pieces;
  for (const int64_t batch : batches(options)) {
    const std::vector<Row> more = time_batch(options, batch, answer);
    rows.insert(rows.end(), more.begin(), more.end());
    const std::vector<PieceRow> more_pieces = time_pieces(options, batch, answer);
    pieces.insert(pieces.end(), more_pieces.begin(), more_pieces.end());
  }
  answer.tables = tables(rows, pieces);
  answer.plot = plot::svg(chart(rows, options.device));
  answer.conclusion = conclude(rows, pieces);
  return answer;
}

}  // namespace pleat::bench::ask::unfold_speed
