#include "pleat/io/csv.h"

#include <cmath>
#include <limits>
#include <string>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;

TEST_CASE("a table is written line by line", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "metrics.csv";
  const auto text = [&] {
    const auto bytes = read_bytes(path);
    return std::string(bytes.begin(), bytes.end());
  };
  io::CsvWriter table(path, {"epoch", "loss", "a, \"note\""});
  CHECK(text() == "epoch,loss,\"a, \"\"note\"\"\"\n");
  table.row({1, 0.1, "plain"});
  table.row({std::int64_t{1} << 40, 1e-30, ""});
  table.row({"", 2.5f, "two\nlines"});
  // Without closing the file.
  CHECK(text() == "epoch,loss,\"a, \"\"note\"\"\"\n1,0.1,plain\n1099511627776,1e-30,\n,2.5,\"two\nlines\"\n");
  const std::size_t before = text().size();
  table.row({std::numeric_limits<std::int64_t>::max(), 0x1p62, 1e300});  // no digit is rounded
  CHECK(text().substr(before) == "9223372036854775807,4611686018427387904,1e+300\n");
  CHECK_THROWS_AS(table.row({1, 2.0}), ValueError);
  CHECK_THROWS_AS(io::CsvWriter(path, {}), ValueError);
  CHECK_THROWS_AS(io::CsvWriter(directory / "none" / "x.csv", {"a"}), FileError);
  CHECK_THROWS_AS(io::CsvWriter(directory.path(), {"a"}), FileError);
}

namespace {

io::Table table_of(const TemporaryDirectory& directory, const std::string& text,
                   const io::ReadCsvOptions& options = {}) {
  write_bytes(directory / "x.csv", std::string_view(text));
  return io::read_csv(directory / "x.csv", options);
}

template <class Error>
std::string refused(const TemporaryDirectory& directory, const std::string& text,
                    const io::ReadCsvOptions& options = {}) {
  try {
    table_of(directory, text, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a CSV file has columns of the types that its cells say", "[io]") {
  const TemporaryDirectory directory;
  const io::Table table = table_of(directory,
                                   "\xef\xbb\xbfid,weight,name,empty,long,mixed\r\n"
                                   "1, 0.5 ,\"a, \"\"b\"\"\",,9007199254740993,9007199254740993\r\n"
                                   "\r\n"
                                   "-2,+1e3,\"two\nlines\",,5,0.5\n"
                                   "+3,inf,,,,1\r");
  CHECK(table.rows() == 3);
  CHECK(table.columns() == std::vector<std::string>{"id", "weight", "name", "empty", "long", "mixed"});
  CHECK(table.dtype("id") == io::ColumnType::int64);
  CHECK(table.column("id").to_vector<int64_t>() == std::vector<int64_t>{1, -2, 3});
  CHECK(table.column("weight").dtype() == float64);
  CHECK(table.column("weight").to_vector<double>() ==
        std::vector<double>{0.5, 1000, std::numeric_limits<double>::infinity()});
  CHECK(table.text("name") == std::vector<std::string>{"a, \"b\"", "two\nlines", ""});
  CHECK(table.missing("name").to_vector<bool>() == std::vector<bool>{false, false, true});
  CHECK(table.dtype("empty") == io::ColumnType::float64);
  CHECK(std::isnan(table.column("empty").to_vector<double>()[1]));
  // A float64 would lose digits.
  CHECK(table.dtype("long") == io::ColumnType::text);
  CHECK(table.dtype("mixed") == io::ColumnType::text);
  CHECK(table.place(2).ends_with("x.csv', line 6"));
  CHECK_THROWS_AS(table.place(3), IndexError);
  CHECK_THROWS_WITH(table.column("x"), Catch::Contains("has no column 'x', but id, weight, name"));
  CHECK_THROWS_WITH(table.column("name"),
                    Catch::Contains("column 'name' of") && Catch::Contains("is text: line 2 has 'a, \"b\"'"));
  CHECK_THROWS_AS(table.text("id"), DTypeError);

  const Tensor both = table.to_tensor({"weight", "id"});
  CHECK(both.dtype() == float32);
  CHECK(both.shape() == Shape{3, 2});
  CHECK(both.to_vector<float>() ==
        std::vector<float>{0.5F, 1, 1000, -2, std::numeric_limits<float>::infinity(), 3});
  CHECK(table.to_tensor({"id"}, int64).dtype() == int64);
  CHECK(table.to_tensor({}).shape() == Shape{3, 0});
  CHECK_THROWS_AS(table.to_tensor({"weight"}, int64), DTypeError);
  CHECK_THROWS_AS(table.to_tensor({"id"}, uint8), DTypeError);
  CHECK_THROWS_AS(table.to_tensor({"name"}), DTypeError);
}

TEST_CASE("a CSV file with what the caller asks for", "[io]") {
  const TemporaryDirectory directory;
  const std::string text = "7;NA;01\n;2;02\n";
  const io::ReadCsvOptions options{
      .sep = ';', .header = false, .dtype = {{"2", io::ColumnType::text}}, .na_values = {"NA"}};
  const io::Table table = table_of(directory, text, options);
  CHECK(table.columns() == std::vector<std::string>{"0", "1", "2"});
  CHECK(table.column("0").dtype() == float64);
  CHECK(table.column("0").to_vector<double>()[0] == 7);
  CHECK(std::isnan(table.column("0").to_vector<double>()[1]));
  CHECK(table.text("2") == std::vector<std::string>{"01", "02"});
  io::ReadCsvOptions masked = options;
  masked.mask = true;
  masked.names = {"a", "b", "c"};
  masked.dtype = {{"b", io::ColumnType::float64}};
  const io::Table with_mask = table_of(directory, text, masked);
  CHECK(with_mask.column("a").dtype() == int64);
  CHECK(with_mask.column("a").to_vector<int64_t>() == std::vector<int64_t>{7, 0});
  CHECK(with_mask.column("b").to_vector<double>() == std::vector<double>{0, 2});
  CHECK(with_mask.missing("a").to_vector<bool>() == std::vector<bool>{false, true});
  // Only the names of the columns.
  CHECK(table_of(directory, "a,b\n").rows() == 0);
  CHECK(table_of(directory, "a,b\n").to_tensor({"b", "a"}).shape() == Shape{0, 2});
  // What was written comes back.
  io::CsvWriter writer(directory / "written.csv", {"n", "x", "t\""});
  writer.row({std::numeric_limits<int64_t>::min(), 0.1, "a,b"});
  writer.row({5, 1e300, "\r\n\""});
  const io::Table back = io::read_csv(directory / "written.csv");
  CHECK(back.column("n").to_vector<int64_t>() ==
        std::vector<int64_t>{std::numeric_limits<int64_t>::min(), 5});
  CHECK(back.column("x").to_vector<double>() == std::vector<double>{0.1, 1e300});
  CHECK(back.text("t\"") == std::vector<std::string>{"a,b", "\r\n\""});
}

TEST_CASE("classes of a column of text", "[io]") {
  const TemporaryDirectory directory;
  const io::Table table = table_of(directory, "kind\tn\ndog\t1\ncat\t2\n\t3\ndog\t4\n", {.sep = '\t'});
  const io::Factors kinds = table.factorize("kind");
  CHECK(kinds.uniques == std::vector<std::string>{"cat", "dog"});
  CHECK(kinds.codes.to_vector<int64_t>() == std::vector<int64_t>{1, 0, -1, 1});
  CHECK(table.factorize("kind", {"dog", "bird", "cat"}).codes.to_vector<int64_t>() ==
        std::vector<int64_t>{0, 2, -1, 0});
  CHECK_THROWS_WITH(table.factorize("kind", {"dog"}),
                    Catch::Contains("x.csv', line 3, column 'kind': 'cat' is none of dog"));
  CHECK_THROWS_AS(table.factorize("n"), DTypeError);
}

TEST_CASE("what is no CSV file is refused with file, line and column", "[io]") {
  const TemporaryDirectory directory;
  const auto says = [&](const std::string& text, const std::string& part, io::ReadCsvOptions options = {}) {
    const std::string message = refused<FileError>(directory, text, options);
    INFO(message);
    CHECK(message.starts_with("read_csv: '" + (directory / "x.csv").string() + "'"));
    CHECK(message.find(part) != std::string::npos);
  };
  using io::ColumnType;
  says("", "is empty");
  says("\n \n", "is empty");
  says("a,b\n1,2\n\"x\ny\",2,3\n", "line 3: has 3 cells where line 1 has 2");
  says("a,b\n1,\"2\n3\n", "line 2: a quote opens here that is not closed");
  says("a,b\n1,\"2\"3\n", "line 2: text follows a closing quote");
  says("a,a\n", "there are two columns 'a'");
  says("a,b\n1,2\n3,x\n", "line 3, column 'b': 'x' is no int64", {.dtype = {{"b", ColumnType::int64}}});
  says("a\n1e999\n", "line 2, column 'a': '1e999' is no float64", {.dtype = {{"a", ColumnType::float64}}});
  says("a,b\n1,\n", "line 2, column 'b': a missing cell is no int64", {.dtype = {{"b", ColumnType::int64}}});
  says(std::string(2000, ','), "more than the", {.memory_limit = 1000});
  CHECK(refused<ValueError>(directory, "a\n", {.sep = '"'}).find("sep must be") != std::string::npos);
  CHECK(refused<FileError>(directory, "a\n", {.names = {"a", "b"}}).find("2 names") != std::string::npos);
  CHECK(refused<FileError>(directory, "a\n", {.dtype = {{"b", ColumnType::text}}})
            .find("has no column 'b', of which dtype says the type, but a") != std::string::npos);
  CHECK_THROWS_AS(io::read_csv(directory / "none.csv"), FileError);
}
