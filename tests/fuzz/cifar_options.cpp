// The command line of train_cifar: an argument a line. What is taken must be what a run can use.
#include "cifar_options.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "options.h"

#include "pleat/models/make_classifier.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::istringstream in(fuzz::text_of(data, size));
  std::vector<std::string> arguments;
  for (std::string line; std::getline(in, line);) arguments.push_back(line);
  // As CLI11 takes them.
  std::reverse(arguments.begin(), arguments.end());

  fuzz::accepts([&] {
    CifarSettings s;
    CLI::App app;
    add_cifar_options(app, s);
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      // An empty text belongs to --help alone.
      fuzz::require(error.get_exit_code() == 0 || error.what()[0] != '\0', "options: refused without a word");
      return;
    }
    check_together(s);
    const auto between = [](double value, double least, double most) {
      return std::isfinite(value) && value >= least && value <= most;
    };
    const std::vector<std::string> models = models::classifier_names();
    fuzz::require(std::count(models.begin(), models.end(), s.model) == 1, "--model: there is none");
    fuzz::require(s.epochs >= 1 && s.epochs <= most_epochs, "--epochs: outside");
    fuzz::require(s.batch_size >= 1, "--batch-size: below 1");
    fuzz::require(std::isfinite(s.chosen_lr()) && s.chosen_lr() > 0, "--lr: not above 0");
    fuzz::require(between(s.chosen_momentum(), 0, 1) && s.chosen_momentum() < 1, "--momentum: outside");
    fuzz::require(between(s.chosen_weight_decay(), 0, INFINITY), "--weight-decay: below 0");
    fuzz::require(between(s.label_smoothing, 0, 1), "--label-smoothing: outside");
    fuzz::require(!s.augment.empty(), "--augment: nothing");
    for (const std::string& change : s.augment)
      fuzz::require(std::count(s.augment.begin(), s.augment.end(), change) == 1, "--augment: one twice");
    fuzz::require(s.threads >= 0 && s.workers >= 0 && s.workers <= 1024, "--threads, --workers: outside");
    fuzz::require(!s.output.empty() && !s.device.empty(), "a name is empty");
  });
  return 0;
}
