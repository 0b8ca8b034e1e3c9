// pleat-bench ops: functions of the survey (op_survey.h), whose cost is mostly that of memory.
#include <regex>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "pleat/bench/machine.h"
#include "pleat/bench/measure.h"
#include "pleat/bench/op_survey.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {
namespace {

class Ops : public Subcommand {
 public:
  Ops()
      : Subcommand("ops",
                   "all functions but convolutions: pointwise, reductions, norms, pools, products ...") {}

  void add_options(CLI::App& app) override {
    app.add_option("--match", match_, "only those whose family/name has this regular expression in it")
        ->check(not_empty());
    add_choice(app, "--size", size_, {"small", "middle", "large"},
               "some thousand, some hundred thousand, or about ten million elements");
    add_list(app, "--letters", letters_,
             "sizes in place of those: N=128,C=64,H=32,W=32; op_survey.cpp says what letters stand for");
    add_list(app, "--pass", passes_, "which passes, separated by commas", passes_);
    add_list(app, "--format", formats_, "memory formats of images and volumes, separated by commas",
             {"contiguous", "channels_last"});
  }

  void run(const CommonOptions& common, Report& report) override {
    report.set_layout({.heading = {"problem"},
                       .columns = {"pass", "format", "median", "quartiles", "runs", "first_call", "gbytes",
                                   "share_of_copy"}});
    const Device device = common.chosen_device();
    const DefaultDevice guard(device);
    report.say(ceilings_text(ceilings(device)));
    bool any = false;
    for (const nlohmann::json& problem : problems()) {
      const std::string name =
          fmt::format("{}/{}", problem.at("group").get<std::string>(), problem.at("name").get<std::string>());
      if (!std::regex_search(name, pattern_)) continue;
      any = true;
      std::vector<Case> cases;
      for (const std::string pass : problem.at("passes"))
        if (contains(passes_, pass))
          for (const std::string& format : formats_of(problem))
            cases.push_back(case_of(problem, name, pass, format, device));
      if (!cases.empty()) report.add(measure(cases, common, false));
    }
    check<UsageError>(any, "ops: --match: no function has \"{}\" in its name", match_);
  }

 private:
  /// Those of the size that was asked for, or that have one size.
  nlohmann::json problems() {
    std::map<std::string, int64_t> sizes;
    for (const std::string& letter : letters_) {
      check<UsageError>(letter.size() > 2 && letter[1] == '=',
                        "ops: --letters: must be like N=128, got \"{}\"", letter);
      sizes[letter.substr(0, 1)] = parse_count("ops: --letters", letter.substr(2));
    }
    nlohmann::json chosen = nlohmann::json::array();
    try {
      pattern_ = match_;
      for (nlohmann::json& problem : op_problems(sizes))
        if (problem.at("size") == "" || problem.at("size") == size_) chosen.push_back(std::move(problem));
    } catch (const std::regex_error& error) {
      fail<UsageError>("ops: --match: is no regular expression: {}", error.what());
    } catch (const ValueError& error) {
      fail<UsageError>("ops: --letters: {}", error.what());
    }
    return chosen;
  }

  std::vector<std::string> formats_of(const nlohmann::json& problem) const {
    for (const nlohmann::json& operand : problem.at("operands"))
      if (operand.at("shape").size() == 4 || operand.at("shape").size() == 5) return formats_;
    return {"contiguous"};
  }

  Case case_of(nlohmann::json problem, const std::string& name, const std::string& pass,
               const std::string& format, Device device) const {
    problem["pass"] = pass;
    problem["format"] = format;
    Case one{.record = {.subcommand = this->name(),
                        .labels = {{"problem", name},
                                   {"pass", pass},
                                   {"format", format},
                                   {"device", pleat::name(device)}}},
             .prepare = {}};
    one.prepare = [problem] {
      const PreparedOp op = prepare_op(problem);
      return Prepared{[work = op.work] { return work(), Tensors(); }, op.bytes};
    };
    return one;
  }

  std::string match_, size_ = "middle";
  std::regex pattern_;
  std::vector<std::string> letters_, passes_ = {"forward", "backward", "training"};
  std::vector<std::string> formats_ = {"contiguous", "channels_last"};
};

}  // namespace

SubcommandPointer make_ops() { return std::make_unique<Ops>(); }

}  // namespace pleat::bench
