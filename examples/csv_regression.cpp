// Regression on a table: a CSV file with a line of names, the target in the last column. Without --data, the
// table is Friedman's first problem (Friedman, "Multivariate adaptive regression splines", 1991): ten columns
// from 0 to 1, of which y = 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 + noise of deviation 1 uses
// five.
//
// Expected: test error (root of the mean square) 1.13, where the noise alone is 1 and a linear model
// has 2.68, in 0.2 s of two cores of an AMD EPYC.
#include <filesystem>
#include <numbers>

#include "options.h"
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

/// The numbers of a CSV file: [rows, columns].
Tensor read_table(const std::string& path) {
  const io::Table table = io::read_csv(path);
  if (table.rows() < 10 || table.columns().size() < 2)
    throw ValueError(path + ": needs at least ten rows of two columns");
  const Tensor numbers = table.to_tensor(table.columns());
  if (!all(isfinite(numbers)).item<bool>()) throw ValueError(path + ": has missing or infinite numbers");
  return numbers;
}

/// Friedman's first problem: [rows, 11].
Tensor draw_table(int64_t rows) {
  const Tensor x = rand({rows, 10});
  const auto column = [&](int64_t i) { return select(x, 1, i); };
  const Tensor y = 10 * sin(std::numbers::pi * column(0) * column(1)) + 20 * square(column(2) - 0.5) +
                   10 * column(3) + 5 * column(4) + randn({rows});
  return cat({x, unsqueeze(y, 1)}, 1);
}

/// Trains on the first rows, whose columns have mean 0 and deviation 1; returns the root mean squared error
/// of the others, in the target's unit.
double train_and_test(nn::Sequential& net, const Tensor& table, int64_t training, int64_t steps) {
  const VarMean of_columns = var_mean(narrow(table, 0, 0, training), 0);
  const Tensor deviation = sqrt(of_columns.var) + 1e-8;
  const Tensor scaled = (table - of_columns.mean) / deviation;
  const int64_t columns = table.size(1) - 1, rows = table.size(0);
  const Tensor x = narrow(scaled, 1, 0, columns), y = narrow(scaled, 1, columns, 1);

  optim::AdamW adam{net.parameters(), {.lr = 5e-3, .weight_decay = 0.1}};
  optim::Schedule schedule{adam, optim::CosineAnnealingLR{.steps = steps}};
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor rows_of_batch = randint(0, training, {64});
    const Tensor loss = mse_loss(net(index_select(x, 0, rows_of_batch)), index_select(y, 0, rows_of_batch));
    adam.zero_grad();
    loss.backward();
    adam.step();
    schedule.step();
  }
  const NoGrad off_the_tape;
  const Tensor predicted = net(narrow(x, 0, training, rows - training));
  return std::sqrt(mse_loss(predicted, narrow(y, 0, training, rows - training)).item()) *
         deviation[columns].item();
}

void run(const TrainingOptions& options, const std::string& file) {
  const Tensor rows = file.empty() ? draw_table(2000) : read_table(file);
  const Tensor table = index_select(rows, 0, randperm(rows.size(0)));
  const int64_t columns = table.size(1) - 1, training = table.size(0) * 4 / 5;
  print("%lld rows, a fifth for the test, %lld columns; the target's deviation is %.2f\n",
        static_cast<long long>(table.size(0)), static_cast<long long>(columns),
        stddev(select(table, 1, columns)).item());
  nn::Sequential linear{nn::Linear{{.in_features = columns, .out_features = 1}}};
  print("linear model: test error %.2f\n", train_and_test(linear, table, training, options.steps));
  nn::Sequential net{nn::Linear{{.in_features = columns, .out_features = 64}}, nn::SiLU{},
                     nn::Linear{{.in_features = 64, .out_features = 64}}, nn::SiLU{},
                     nn::Linear{{.in_features = 64, .out_features = 1}}};
  print("network: test error %.2f\n", train_and_test(net, table, training, options.steps));
}

}  // namespace

int main(int argc, char** argv) {
  std::string file;
  CLI::App app{"Predicts the last column of a CSV file from the others.", "csv_regression"};
  app.add_option("--data", file, "A CSV file of numbers, with a line of names first")
      ->check(not_empty())
      ->check(CLI::ExistingFile);
  return run_training(app, {.steps = 2000}, argc, argv,
                      [&](const TrainingOptions& options) { run(options, file); });
}
