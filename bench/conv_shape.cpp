#include "pleat/bench/conv_shape.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "pleat/bench/options.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/tensor/create.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {
namespace {

using Numbers = std::vector<int64_t>;

constexpr const char* example =
    "; write for example \"n128 c64 k64 hw32 r3 s1 p1\", \"c32 k32 w4096 r2\" or \"n2 c16 k32 d8 h32 w32 "
    "r1x3x3 p0x1x1\"";

/// The numbers of a shape by their letters.
class Parts {
 public:
  explicit Parts(const std::string& shape) : shape_(shape) {
    static const std::vector<std::string> keys{"n",   "c", "k", "g", "d",  "h",  "w",  "hw",
                                               "dhw", "r", "s", "p", "pl", "ph", "dil"};
    const auto take = [](std::string& text, const char* letters) {
      const std::string taken = text.substr(0, text.find_first_not_of(letters));
      text.erase(0, taken.size());
      return taken;
    };
    std::istringstream words(shape);
    for (std::string word; words >> word;)
      while (!word.empty()) {
        const std::string here = word, key = take(word, "abcdefghijklmnopqrstuvwxyz");
        require(contains(keys, key), "knows {}, got \"{}\"", fmt::join(keys, ", "), here);
        require(!has(key), "{} is there twice", key);
        std::string numbers = take(word, "0123456789x");
        std::replace(numbers.begin(), numbers.end(), 'x', ',');
        for (const std::string& text : ::split(numbers)) {
          const auto number = parse_number<int64_t>(text);  // none when it is too large, too
          require(number.has_value(), "{} needs a number that is not negative, got \"{}\"", key, here);
          parts_[key].push_back(*number);
        }
      }
  }

  /// The checks are those of the convolution itself. Of its errors the first line is left: those below list
  /// operands, which the shape says already.
  ops::ConvProblem problem() const {
    const Numbers sizes = input_sizes();
    const std::size_t dims = sizes.size();
    const int64_t groups = one("g", 1), in_channels = one("c");
    require(groups >= 1, "g must be at least 1, got {}", groups);
    require(!has("p") || (!has("pl") && !has("ph")), "has p, and pl or ph");
    Shape input{one("n", 1), in_channels}, weight{one("k"), in_channels / groups};
    const Numbers kernel = numbers("r", dims);
    input.insert(input.end(), sizes.begin(), sizes.end());
    weight.insert(weight.end(), kernel.begin(), kernel.end());
    const Numbers low = numbers(has("p") ? "p" : "pl", dims, 0),
                  high = numbers(has("p") ? "p" : "ph", dims, 0);
    std::vector<std::pair<int64_t, int64_t>> padding;
    for (std::size_t d = 0; d < dims; ++d) padding.emplace_back(low[d], high[d]);
    const ConvOptions options{.stride = numbers("s", dims, 1),
                              .padding = Padding(padding),
                              .dilation = numbers("dil", dims, 1),
                              .groups = groups};
    const Tensor like = empty({0});
    const ConvPolicy plain({});
    try {
      return ops::make_conv_problem(fmt::format("conv{}d", dims).c_str(), static_cast<int>(dims),
                                    {"input", input, like}, {"weight", weight, like}, options);
    } catch (const Error& error) {
      const std::string text = error.what();
      fail<UsageError>("shape \"{}\": {}", shape_, text.substr(0, text.find('\n')));
    }
  }

 private:
  template <class... Args>
  void require(bool holds, fmt::string_view what, const Args&... args) const {
    if (!holds)
      fail<UsageError>("shape \"{}\": {}{}", shape_, fmt::vformat(what, fmt::make_format_args(args...)),
                       example);
  }

  bool has(const std::string& key) const { return parts_.count(key) > 0; }

  /// `count` of them; where one is written it stands for all.
  Numbers numbers(const std::string& key, std::size_t count, std::optional<int64_t> otherwise = {}) const {
    require(has(key) || otherwise.has_value(), "{} is missing", key);
    Numbers numbers = has(key) ? parts_.at(key) : Numbers{*otherwise};
    if (numbers.size() == 1) numbers.resize(count, numbers[0]);
    require(numbers.size() == count, "{} takes one number{}, got {}", key,
            count > 1 ? fmt::format(", or {} joined by x", count) : "", numbers.size());
    return numbers;
  }
  int64_t one(const std::string& key, std::optional<int64_t> otherwise = {}) const {
    return numbers(key, 1, otherwise)[0];
  }

  /// Their number is that of the dimensions.
  Numbers input_sizes() const {
    if (const std::string joined = has("dhw") ? "dhw" : has("hw") ? "hw" : ""; !joined.empty()) {
      for (const char* other : {"d", "h", "w", "hw"})
        require(other == joined || !has(other), "has {} and {}", joined, other);
      return numbers(joined, joined.size());
    }
    Numbers sizes{one("w")};
    if (has("h") || has("d")) sizes.insert(sizes.begin(), one("h"));
    if (has("d")) sizes.insert(sizes.begin(), one("d"));
    return sizes;
  }

  const std::string& shape_;
  std::map<std::string, Numbers> parts_;
};

/// The cells of a line; in quotes a comma is text.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

/// A row, whose cells stand under the names of columns, as a shape.
NamedProblem problem_of(const std::map<std::string, std::string>& cells, const std::string& where) {
  const auto has = [&](const std::string& column) { return cells.count(column) > 0; };
  const auto number = [&](const std::string& column) {
    check<FileError>(has(column), "{}: the column {} is missing", where, column);
    const auto value = parse_number<int64_t>(cells.at(column));
    check<FileError>(value && *value >= 0, "{}: {} must be a number that is not negative, got \"{}\"", where,
                     column, cells.at(column));
    return *value;
  };
  // Without a column that says it: as many as have a size or a kernel above 1.
  const int64_t dims = has("dims")                            ? number("dims")
                       : number("id") > 1 || number("kd") > 1 ? 3
                       : number("ih") > 1 || number("kh") > 1 ? 2
                                                              : 1;
  check<FileError>(dims >= 1 && dims <= 3, "{}: dims must be 1, 2 or 3, got {}", where, dims);
  const std::string axes = std::string("dhw").substr(static_cast<std::size_t>(3 - dims));
  const auto spatial = [&](const std::string& prefix, const std::string& suffix = "") {
    Numbers numbers;
    for (const char axis : axes) numbers.push_back(number(prefix + axis + suffix));
    return numbers;
  };
  // The columns *_r say how far the last output reaches. That is less than the padding, or even negative,
  // where the stride does not come out even; with sym = 1 both sides are padded alike.
  const bool alike = !has("pw_r") || (has("sym") && number("sym") == 1);
  std::string shape = fmt::format("n{} c{} k{} g{}", number("n"), number("ic"), number("oc"), number("g"));
  for (const auto& [letters, numbers] :
       std::vector<std::pair<std::string, Numbers>>{{axes, spatial("i")},
                                                    {"r", spatial("k")},
                                                    {"s", spatial("s")},
                                                    {"dil", spatial("d")},
                                                    {"pl", spatial("p")},
                                                    {"ph", spatial("p", alike ? "" : "_r")}})
    shape += fmt::format(" {}{}", letters, fmt::join(numbers, "x"));
  ops::ConvProblem problem;
  try {
    problem = parse_conv_shape(shape);
  } catch (const UsageError& error) {
    fail<FileError>("{}: {}", where, error.what());
  }
  if (has("ow")) {
    const Shape wanted = spatial("o"), got(problem.output.end() - dims, problem.output.end());
    check<FileError>(wanted == got, "{}: the output of {} has sizes {}, the row says {}", where,
                     problem.describe(), got, wanted);
  }
  return {has("name") ? cells.at("name") : "", problem};
}

}  // namespace

ops::ConvProblem parse_conv_shape(const std::string& text) { return Parts(text).problem(); }

std::vector<NamedProblem> read_conv_shapes(const std::filesystem::path& path) {
  const InputFile file("--shapes", path);
  return reading(file.name(), [&] {
    // A row becomes a problem of some hundred bytes; cells are held for one row at a time.
    constexpr int64_t expansion = 64;
    std::istringstream in(file.read_text(expansion));
    std::string line;
    check<FileError>(static_cast<bool>(std::getline(in, line)),
                     "{}: is empty; its first line must name the columns", file.name());
    const std::vector<std::string> columns = cells_of(line);
    std::vector<NamedProblem> problems;
    for (int number = 2; std::getline(in, line); ++number) {
      if (line.empty() || line == "\r") continue;
      const std::string where = fmt::format("{}:{}", path.string(), number);
      const std::vector<std::string> cells = cells_of(line);
      check<FileError>(cells.size() == columns.size(), "{}: needs {} cells, as the first line has, got {}",
                       where, columns.size(), cells.size());
      std::map<std::string, std::string> row;
      for (std::size_t i = 0; i < cells.size(); ++i) row[columns[i]] = cells[i];
      problems.push_back(problem_of(row, where));
    }
    check<FileError>(!problems.empty(), "{}: has no rows", file.name());
    return problems;
  });
}

}  // namespace pleat::bench
