#include "pleat/bench/ask/answer.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "pleat/bench/charts.h"
#include "pleat/bench/machine.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/text_table.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/examples/common/terminal.h"
#include "pleat/ops/conv/conv.h"

namespace pleat::bench::ask {
namespace {

constexpr double level = 0.05;  ///< medians this close are level whatever their quartiles say

void add_new(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

}  // namespace

std::string Cell::name() const {
  std::string text = problem;
  for (const std::string* part : {&way, &pass})
    if (!part->empty()) text += (text.empty() ? "" : ", ") + *part;
  return text;
}

void Times::measure(const AskOptions& options, const std::vector<Work>& all) {
  // What earlier sizes have left would take the room that these need.
  empty_cache(options.device);
  std::vector<benchmark::Subject> subjects;
  for (const Work& work : all) subjects.push_back({.run = work.run, .tune = work.tune});
  const auto measured = benchmark::Timer(options.timer).measure_in_turns(subjects);
  for (std::size_t i = 0; i < all.size(); ++i)
    add({all[i].problem, all[i].way, all[i].pass, Time(measured[i])});
}

const Cell* Times::find(const std::string& problem, const std::string& way, const std::string& pass) const {
  const auto found = std::find_if(cells_.begin(), cells_.end(), [&](const Cell& cell) {
    return cell.problem == problem && cell.way == way && cell.pass == pass;
  });
  return found == cells_.end() ? nullptr : &*found;
}

const Time& Times::at(const std::string& problem, const std::string& way, const std::string& pass) const {
  const Cell* found = find(problem, way, pass);
  check<ValueError>(found != nullptr, "ask: nothing was measured under the name \"{}\"",
                    Cell{problem, way, pass}.name());
  return found->time;
}

Time Times::total(const std::string& problem, const std::string& way,
                  const std::vector<std::string>& passes) const {
  Time all = at(problem, way, passes.at(0));
  for (std::size_t i = 1; i < passes.size(); ++i) all = sum(all, at(problem, way, passes[i]));
  return all;
}

std::vector<std::string> Times::problems() const {
  std::vector<std::string> list;
  for (const Cell& cell : cells_) add_new(list, cell.problem);
  return list;
}

std::vector<std::string> Times::ways(const std::string& problem) const {
  std::vector<std::string> list;
  for (const Cell& cell : cells_)
    if (cell.problem == problem) add_new(list, cell.way);
  return list;
}

std::string Times::fastest(const std::string& problem, const std::vector<std::string>& passes,
                           const std::string& except) const {
  std::vector<std::string> list = ways(problem);
  std::erase(list, except);
  return *std::min_element(list.begin(), list.end(), [&](const std::string& a, const std::string& b) {
    return total(problem, a, passes).median < total(problem, b, passes).median;
  });
}

std::vector<Cell> Times::rows(const std::vector<std::string>& problems) const {
  std::vector<Cell> rows;
  for (const std::string& problem : problems)
    for (const std::string& way : ways(problem)) rows.push_back({problem, way, ""});
  return rows;
}

Column Times::column(const std::string& title, std::vector<std::string> passes) const {
  if (passes.empty()) passes = {title};
  return {title, [this, passes](const Cell& row) { return ask::text(total(row.problem, row.way, passes)); }};
}

Column Times::ratio_column(const std::string& over, const std::string& under) const {
  return {over + " / " + under, [=, this](const Cell& row) {
            return factor_text(ratio(at(row.problem, row.way, over), at(row.problem, row.way, under)).value);
          }};
}

std::string table(const std::string& title, const std::vector<Cell>& rows,
                  const std::vector<Column>& columns) {
  std::vector<TextTable::Column> alignment(1 + columns.size());
  alignment[0].left = true;
  TextTable table(alignment, "  ");
  table.add_text(title);
  std::vector<std::string> cells{""};
  for (const Column& column : columns) cells.push_back(column.title);
  table.add(cells);
  for (const Cell& row : rows) {
    cells = {row.way};
    for (const Column& column : columns) cells.push_back(column.text(row));
    table.add(cells);
  }
  return table.text();
}

std::string bars(const std::string& title, Device device, const Times& times,
                 const std::function<Place(const Cell&)>& place) {
  chart::BarChart chart{.title = title, .subtitle = describe_machine(device, 0), .axis = "time [ms]"};
  for (const Cell& cell : times.cells())
    if (const Place found = place(cell)) chart.add(found->first, found->second, bar(cell.time, 1e-3));
  return chart::svg(chart);
}

std::string indented(const std::string& sentence, const std::string& first) {
  constexpr int line_length = 100;
  std::istringstream lines(wrapped(sentence, line_length - static_cast<int>(first.size())));
  std::string result, begin = first;
  for (std::string line; std::getline(lines, line); begin = std::string(first.size(), ' '))
    result += begin + line + '\n';
  return result;
}

std::string text(const Answer& answer) {
  std::string result;
  for (const std::string& line : answer.setup) result += indented(line);
  for (const std::string& table : answer.tables) result += '\n' + table;
  result += "\nMedians; ~ where the quartiles are more than a tenth apart.\n\nConclusion\n";
  for (const std::string& sentence : answer.conclusion) result += indented(sentence, "- ");
  return result;
}

std::string median_text(const Time& time) { return benchmark::format_time(time.median, 3); }
std::string text(const Time& time) { return median_text(time) + (time.has_wide_spread() ? " ~" : ""); }

Time time_of(const std::vector<double>& runs) {
  benchmark::Measurement measured;
  measured.times = measured.wall_times = runs;
  return Time(measured);
}

Time sum(const Time& a, const Time& b) {
  Time both = a;
  for (double Time::*seconds : {&Time::median, &Time::lower_quartile, &Time::upper_quartile, &Time::mean,
                                &Time::wall_median, &Time::first_call})
    both.*seconds += b.*seconds;
  return both;
}

Ratio ratio(const Time& a, const Time& b) {
  return {a.median / b.median, a.lower_quartile / b.upper_quartile, a.upper_quartile / b.lower_quartile};
}

Relation relate(const Time& a, const Time& b) {
  const Ratio r = ratio(a, b);
  if (std::abs(std::log(r.value)) <= std::log1p(level)) return Relation::level;
  if (r.low > 1) return Relation::longer;
  return r.high < 1 ? Relation::shorter : Relation::unclear;
}

std::string verdict(const Time& a, const Time& b, const std::array<std::string, 4>& texts) {
  return texts.at(static_cast<std::size_t>(relate(a, b)));
}

std::string comparison(const std::string& a, const Time& time_a, const std::string& b, const Time& time_b) {
  if (time_a.median < time_b.median) return comparison(b, time_b, a, time_a);
  const Ratio r = ratio(time_a, time_b);
  const std::string quartiles = fmt::format("quartiles {:.2f} to {:.2f}", r.low, r.high);
  if (relate(time_a, time_b) == Relation::longer)
    return fmt::format("{} takes {} times as long as {} ({} against {}, {})", a, factor_text(r.value), b,
                       median_text(time_a), median_text(time_b), quartiles);
  return fmt::format("{} and {} {} ({} and {}, ratio {:.2f}, {})", a, b,
                     verdict(time_a, time_b, {"", "are level", "cannot be told apart in the noise", ""}),
                     median_text(time_a), median_text(time_b), r.value, quartiles);
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string factor_text(double factor) {
  return fmt::format("{:.{}f}", factor, factor < 1.95 ? 2 : factor < 9.95 ? 1 : 0);
}

Tensor gradient_for(const Tensor& y) {
  return ops::to_format(randn(y.shape(), {.device = y.device()}), y.memory_format());
}

std::vector<std::string> fast_implementations(Device device) {
  std::vector<std::string> names = ops::conv_implementations(device);
  std::erase(names, "reference");
  return names;
}

}  // namespace pleat::bench::ask
