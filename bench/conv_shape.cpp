#include "pleat/bench/conv_shape.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "pleat/bench/options.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/tensor/create.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {
namespace {

using Numbers = std::vector<int64_t>;

/// A convolution as it is written down, with spatial sizes of as many dimensions as it has.
struct Written {
  int64_t batch = 1, in_channels = 0, out_channels = 0, groups = 1;
  Numbers input = {}, kernel = {}, stride = {}, dilation = {};
  std::vector<std::pair<int64_t, int64_t>> padding = {};  ///< low and high
};

/// The checks are those of the convolution itself. Its errors become `E`, with what `where` says before their
/// first line: those below list operands, which a shape or row says already.
template <class E>
ops::ConvProblem make_problem(const Written& c, const std::string& where) {
  check<E>(c.groups >= 1, "{}: g must be at least 1, got {}", where, c.groups);
  const std::size_t dims = c.input.size();
  Shape input{c.batch, c.in_channels}, weight{c.out_channels, c.in_channels / c.groups};
  input.insert(input.end(), c.input.begin(), c.input.end());
  weight.insert(weight.end(), c.kernel.begin(), c.kernel.end());
  const Tensor like = empty({0});
  const ConvPolicy plain({});
  try {
    return ops::make_conv_problem(
        dims == 1   ? "conv1d"
        : dims == 2 ? "conv2d"
                    : "conv3d",
        static_cast<int>(dims), ops::ConvOperand("input", input, like),
        ops::ConvOperand("weight", weight, like),
        {.stride = c.stride, .padding = Padding(c.padding), .dilation = c.dilation, .groups = c.groups});
  } catch (const Error& error) {
    const std::string text = error.what();
    fail<E>("{}: {}", where, text.substr(0, text.find('\n')));
  }
}

constexpr const char* example =
    "; write for example \"n128 c64 k64 hw32 r3 s1 p1\", \"c32 k32 w4096 r2\" or \"n2 c16 k32 d8 h32 w32 "
    "r1x3x3 p0x1x1\"";

/// The numbers of a shape by their letters.
class Parts {
 public:
  explicit Parts(const std::string& shape) : shape_(shape) {
    static const std::vector<std::string> keys{"n",   "c", "k", "g", "d",  "h",  "w",  "hw",
                                               "dhw", "r", "s", "p", "pl", "ph", "dil"};
    std::string_view rest = shape;
    const auto take = [&](auto is_in) {
      const auto end = std::find_if_not(rest.begin(), rest.end(), [&](unsigned char c) { return is_in(c); });
      const std::string taken(rest.begin(), end);
      rest.remove_prefix(taken.size());
      return taken;
    };
    while (take([](int c) { return std::isspace(c); }), !rest.empty()) {
      const std::string from_here(rest.substr(0, rest.find(' ')));
      const std::string key = take([](int c) { return std::isalpha(c); });
      require(std::find(keys.begin(), keys.end(), key) != keys.end(),
              "knows n, c, k, g, d, h, w, hw, dhw, r, s, p, pl, ph and dil, got \"{}\"", from_here);
      require(parts_.try_emplace(key).second, "{} is there twice", key);
      std::string numbers = take([](int c) { return std::isdigit(c) != 0 || c == 'x'; });
      std::replace(numbers.begin(), numbers.end(), 'x', ',');
      for (const std::string& text : ::split(numbers)) {
        const auto number = parse_number<int64_t>(text);  // none when it is too large, too
        require(number.has_value(), "{} needs a number that is not negative, got \"{}\"", key, from_here);
        parts_[key].push_back(*number);
      }
    }
  }

  Written written() const {
    Written c{.batch = one("n", 1), .groups = one("g", 1)};
    c.input = sizes();
    const std::size_t dims = c.input.size();
    require(c.groups >= 1, "g must be at least 1, got {}", c.groups);
    c.in_channels = one("c");
    c.out_channels = one("k");
    c.kernel = each("r", dims);
    c.stride = each("s", dims, 1);
    c.dilation = each("dil", dims, 1);
    require(!has("p") || (!has("pl") && !has("ph")), "has p, and pl or ph");
    const Numbers low = has("p") ? each("p", dims) : each("pl", dims, 0);
    const Numbers high = has("p") ? low : each("ph", dims, 0);
    for (std::size_t d = 0; d < dims; ++d) c.padding.emplace_back(low[d], high[d]);
    return c;
  }

 private:
  template <class... Args>
  void require(bool holds, fmt::string_view what, const Args&... args) const {
    if (!holds)
      fail<UsageError>("shape \"{}\": {}{}", shape_, fmt::vformat(what, fmt::make_format_args(args...)),
                       example);
  }

  bool has(const std::string& key) const { return parts_.count(key) > 0; }

  int64_t one(const std::string& key, std::optional<int64_t> otherwise = {}) const {
    require(has(key) || otherwise.has_value(), "{} is missing", key);
    if (!has(key)) return *otherwise;
    const Numbers& numbers = parts_.at(key);
    require(numbers.size() == 1, "{} takes one number, got {}", key, numbers.size());
    return numbers[0];
  }

  /// One number for each dimension.
  Numbers each(const std::string& key, std::size_t dims, std::optional<int64_t> otherwise = {}) const {
    if (!has(key)) return Numbers(dims, one(key, otherwise));
    const Numbers& numbers = parts_.at(key);
    if (numbers.size() == 1) return Numbers(dims, numbers[0]);
    require(numbers.size() == dims, "{} takes one number, or {} joined by x, got {}", key, dims,
            numbers.size());
    return numbers;
  }

  /// Sizes of the input; their number is that of the dimensions.
  Numbers sizes() const {
    if (const std::string joined = has("dhw") ? "dhw" : has("hw") ? "hw" : ""; !joined.empty()) {
      for (const char* other : {"d", "h", "w", "hw"})
        require(other == joined || !has(other), "has {} and {}", joined, other);
      return each(joined, joined.size());
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

/// One row under the names of the columns.
class CsvRow {
 public:
  CsvRow(std::string where, const std::vector<std::string>& columns, const std::vector<std::string>& cells)
      : where_(std::move(where)) {
    check<FileError>(cells.size() == columns.size(), "{}: needs {} cells, as the first line has, got {}",
                     where_, columns.size(), cells.size());
    for (std::size_t i = 0; i < columns.size(); ++i) cells_[columns[i]] = cells[i];
  }

  NamedProblem problem() const {
    const std::size_t dims = spatial_dims();
    Written c{.batch = number("n"),
              .in_channels = number("ic"),
              .out_channels = number("oc"),
              .groups = number("g"),
              .input = spatial("i", dims),
              .kernel = spatial("k", dims),
              .stride = spatial("s", dims),
              .dilation = spatial("d", dims)};
    // The columns *_r say how far the last output reaches. That is less than the padding, or even negative,
    // where the stride does not come out even; with sym = 1 both sides are padded alike.
    const Numbers low = spatial("p", dims);
    const bool alike = !has("pw_r") || (has("sym") && number("sym") == 1);
    const Numbers high = alike ? low : spatial("p", dims, "_r");
    for (std::size_t d = 0; d < dims; ++d) c.padding.emplace_back(low[d], high[d]);
    const ops::ConvProblem problem = make_problem<FileError>(c, where_);
    if (has("ow")) {
      const Shape wanted(spatial("o", dims));
      const Shape got(problem.output.begin() + static_cast<std::ptrdiff_t>(3 - dims), problem.output.end());
      check<FileError>(wanted == got, "{}: the output of {} has sizes {}, the row says {}", where_,
                       problem.describe(), got, wanted);
    }
    return {has("name") ? cells_.at("name") : "", problem};
  }

 private:
  bool has(const std::string& column) const { return cells_.count(column) > 0; }

  int64_t number(const std::string& column) const {
    check<FileError>(has(column), "{}: the column {} is missing", where_, column);
    const auto value = parse_number<int64_t>(cells_.at(column));
    check<FileError>(value && *value >= 0, "{}: {} must be a number that is not negative, got \"{}\"", where_,
                     column, cells_.at(column));
    return *value;
  }

  /// The last `dims` of the columns prefix + d, h, w + suffix.
  Numbers spatial(const std::string& prefix, std::size_t dims, const std::string& suffix = "") const {
    Numbers numbers;
    for (std::size_t d = 3 - dims; d < 3; ++d) numbers.push_back(number(prefix + "dhw"[d] + suffix));
    return numbers;
  }

  /// Without a column that says it: as many as have a size or a kernel above 1.
  std::size_t spatial_dims() const {
    if (!has("dims"))
      return number("id") > 1 || number("kd") > 1 ? 3 : number("ih") > 1 || number("kh") > 1 ? 2 : 1;
    const int64_t dims = number("dims");
    check<FileError>(dims >= 1 && dims <= 3, "{}: dims must be 1, 2 or 3, got {}", where_, dims);
    return static_cast<std::size_t>(dims);
  }

  std::string where_;
  std::map<std::string, std::string> cells_;
};

}  // namespace

ops::ConvProblem parse_conv_shape(const std::string& text) {
  return make_problem<UsageError>(Parts(text).written(), fmt::format("shape \"{}\"", text));
}

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
      problems.push_back(
          CsvRow(fmt::format("{}:{}", path.string(), number), columns, cells_of(line)).problem());
    }
    check<FileError>(!problems.empty(), "{}: has no rows", file.name());
    return problems;
  });
}

}  // namespace pleat::bench
