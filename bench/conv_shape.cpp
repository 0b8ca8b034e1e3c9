#include "pleat/bench/conv_shape.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "pleat/bench/usage_error.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/tensor/create.h"

namespace pleat::bench {
namespace {

using Numbers = std::vector<int64_t>;

constexpr const char* example =
    "; write for example \"n128 c64 k64 hw32 r3 s1 p1\", \"c32 k32 w4096 r2\" or \"n2 c16 k32 d8 h32 w32 "
    "r1x3x3 p0x1x1\"";

constexpr std::string_view keys[] = {"n",   "c", "k", "g", "d",  "h",  "w",  "hw",
                                     "dhw", "r", "s", "p", "pl", "ph", "dil"};

/// "1x3x3" from `text` on; takes it away. Empty when it does not begin with a number, or one is too large.
std::optional<Numbers> take_numbers(std::string_view& text) {
  Numbers numbers;
  for (;;) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.size() < 2 || text[0] != 'x' || std::isdigit(static_cast<unsigned char>(text[1])) == 0)
      return numbers;
    text.remove_prefix(1);
  }
}

std::map<std::string, Numbers> parts_of(const std::string& shape) {
  std::map<std::string, Numbers> parts;
  std::string_view rest = shape;
  for (;;) {
    while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest[0])) != 0) rest.remove_prefix(1);
    if (rest.empty()) return parts;
    const auto letters = static_cast<std::size_t>(
        std::find_if(rest.begin(), rest.end(), [](unsigned char c) { return std::isalpha(c) == 0; }) -
        rest.begin());
    const std::string key(rest.substr(0, letters));
    const std::string from_here(rest.substr(0, rest.find(' ')));
    check<UsageError>(
        std::find(std::begin(keys), std::end(keys), key) != std::end(keys),
        "shape \"{}\": knows n, c, k, g, d, h, w, hw, dhw, r, s, p, pl, ph and dil, got \"{}\"{}", shape,
        from_here, example);
    rest.remove_prefix(letters);
    const auto numbers = take_numbers(rest);
    check<UsageError>(numbers.has_value(),
                      "shape \"{}\": {} needs a number that is not negative, got \"{}\"{}", shape, key,
                      from_here, example);
    check<UsageError>(parts.emplace(key, *numbers).second, "shape \"{}\": {} is there twice{}", shape, key,
                      example);
  }
}

/// The parts of a shape, asked for one after the other.
class Parts {
 public:
  explicit Parts(const std::string& shape) : shape_(shape), parts_(parts_of(shape)) {}

  bool has(const std::string& key) const { return parts_.count(key) > 0; }

  int64_t one(const std::string& key, std::optional<int64_t> otherwise = {}) const {
    const auto found = parts_.find(key);
    if (found == parts_.end()) {
      check<UsageError>(otherwise.has_value(), "shape \"{}\": {} is missing{}", shape_, key, example);
      return *otherwise;
    }
    check<UsageError>(found->second.size() == 1, "shape \"{}\": {} takes one number, got {}{}", shape_, key,
                      found->second.size(), example);
    return found->second[0];
  }

  /// One number for each dimension.
  Numbers each(const std::string& key, std::size_t dims, std::optional<int64_t> otherwise = {}) const {
    const auto found = parts_.find(key);
    if (found == parts_.end()) return Numbers(dims, one(key, otherwise));
    if (found->second.size() == 1) return Numbers(dims, found->second[0]);
    check<UsageError>(found->second.size() == dims,
                      "shape \"{}\": {} takes one number, or {} joined by x, got {}{}", shape_, key, dims,
                      found->second.size(), example);
    return found->second;
  }

  /// Sizes of the input; their number is that of the dimensions.
  Numbers sizes() const {
    const std::string joined = has("dhw") ? "dhw" : has("hw") ? "hw" : "";
    if (!joined.empty()) {
      for (const char* other : {"d", "h", "w", "hw"})
        check<UsageError>(other == joined || !has(other), "shape \"{}\": has {} and {}{}", shape_, joined,
                          other, example);
      return each(joined, joined.size());
    }
    Numbers sizes{one("w")};
    if (has("h") || has("d")) sizes.insert(sizes.begin(), one("h"));
    if (has("d")) sizes.insert(sizes.begin(), one("d"));
    return sizes;
  }

  std::vector<std::pair<int64_t, int64_t>> padding(std::size_t dims) const {
    check<UsageError>(!has("p") || (!has("pl") && !has("ph")), "shape \"{}\": has p, and pl or ph{}", shape_,
                      example);
    const Numbers low = has("p") ? each("p", dims) : each("pl", dims, 0);
    const Numbers high = has("p") ? low : each("ph", dims, 0);
    std::vector<std::pair<int64_t, int64_t>> sides;
    for (std::size_t d = 0; d < dims; ++d) sides.emplace_back(low[d], high[d]);
    return sides;
  }

 private:
  const std::string& shape_;
  std::map<std::string, Numbers> parts_;
};

const char* op_name(std::size_t dims) { return dims == 1 ? "conv1d" : dims == 2 ? "conv2d" : "conv3d"; }

Shape joined(int64_t a, int64_t b, const Numbers& sizes) {
  Shape shape{a, b};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  return shape;
}

/// The checks are those of the convolution itself.
ops::ConvProblem checked_problem(const Shape& input, const Shape& weight, const ConvOptions& options) {
  const Tensor like = empty({0});
  const std::size_t dims = input.size() - 2;
  const ConvPolicy plain({});
  return ops::make_conv_problem(op_name(dims), static_cast<int>(dims), ops::ConvOperand("input", input, like),
                                ops::ConvOperand("weight", weight, like), options);
}

/// What the convolution says. The lines below list its operands, which a shape or row says already.
std::string first_line(const Error& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// --- CSV
// --------------------------------------------------------------------------------------------------------

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

  bool has(const std::string& column) const { return cells_.count(column) > 0; }
  std::string text(const std::string& column) const { return has(column) ? cells_.at(column) : ""; }

  int64_t number(const std::string& column) const {
    check<FileError>(has(column), "{}: the column {} is missing", where_, column);
    const std::string& cell = cells_.at(column);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    check<FileError>(error == std::errc() && end == cell.data() + cell.size() && value >= 0,
                     "{}: {} must be a number that is not negative, got \"{}\"", where_, column, cell);
    return value;
  }

  /// The last `dims` of the columns prefix + d, h, w + suffix.
  Numbers spatial(const std::string& prefix, std::size_t dims, const std::string& suffix = "") const {
    Numbers numbers;
    for (std::size_t d = 3 - dims; d < 3; ++d) numbers.push_back(number(prefix + "dhw"[d] + suffix));
    return numbers;
  }

  const std::string& where() const { return where_; }

 private:
  std::string where_;
  std::map<std::string, std::string> cells_;
};

/// Without a column that says it: as many dimensions as have a size or a kernel above 1.
std::size_t dims_of(const CsvRow& row) {
  if (row.has("dims")) {
    const int64_t dims = row.number("dims");
    check<FileError>(dims >= 1 && dims <= 3, "{}: dims must be 1, 2 or 3, got {}", row.where(), dims);
    return static_cast<std::size_t>(dims);
  }
  if (row.number("id") > 1 || row.number("kd") > 1) return 3;
  return row.number("ih") > 1 || row.number("kh") > 1 ? 2 : 1;
}

NamedProblem problem_of(const CsvRow& row) {
  const std::size_t dims = dims_of(row);
  const int64_t groups = row.number("g");
  check<FileError>(groups >= 1, "{}: g must be at least 1, got {}", row.where(), groups);
  const Numbers low = row.spatial("p", dims);
  // The columns *_r say how far the last output reaches. That is less than the padding, or even negative,
  // where the stride does not come out even; with sym = 1 both sides are padded alike.
  const bool alike = !row.has("pw_r") || (row.has("sym") && row.number("sym") == 1);
  const Numbers high = alike ? low : row.spatial("p", dims, "_r");
  std::vector<std::pair<int64_t, int64_t>> padding;
  for (std::size_t d = 0; d < dims; ++d) padding.emplace_back(low[d], high[d]);
  const ConvOptions options{.stride = row.spatial("s", dims),
                            .padding = Padding(padding),
                            .dilation = row.spatial("d", dims),
                            .groups = groups};
  NamedProblem named{row.text("name"), {}};
  try {
    named.problem =
        checked_problem(joined(row.number("n"), row.number("ic"), row.spatial("i", dims)),
                        joined(row.number("oc"), row.number("ic") / groups, row.spatial("k", dims)), options);
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    fail<FileError>("{}: {}", row.where(), first_line(error));
  }
  if (row.has("ow")) {
    const Numbers wanted = row.spatial("o", dims);
    const Numbers got(named.problem.output.end() - static_cast<std::ptrdiff_t>(dims),
                      named.problem.output.end());
    check<FileError>(wanted == got, "{}: the output of {} has sizes {}, the row says {}", row.where(),
                     named.problem.describe(), Shape(got), Shape(wanted));
  }
  return named;
}

}  // namespace

ops::ConvProblem parse_conv_shape(const std::string& text) {
  const Parts parts(text);
  const Numbers sizes = parts.sizes();
  const std::size_t dims = sizes.size();
  const int64_t groups = parts.one("g", 1);
  check<UsageError>(groups >= 1, "shape \"{}\": g must be at least 1, got {}{}", text, groups, example);
  const int64_t channels = parts.one("c");
  try {
    return checked_problem(joined(parts.one("n", 1), channels, sizes),
                           joined(parts.one("k"), channels / groups, parts.each("r", dims)),
                           {.stride = parts.each("s", dims, 1),
                            .padding = Padding(parts.padding(dims)),
                            .dilation = parts.each("dil", dims, 1),
                            .groups = groups});
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    fail<UsageError>("shape \"{}\": {}", text, first_line(error));
  }
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
          problem_of(CsvRow(fmt::format("{}:{}", path.string(), number), columns, cells_of(line))));
    }
    check<FileError>(!problems.empty(), "{}: has no rows", file.name());
    return problems;
  });
}

}  // namespace pleat::bench
