#include "pleat/examples/common/options.h"

#include "pleat/tests/catch.h"

namespace {

/// What a parser with one option says to a text; "" when it takes it.
template <class T>
std::string answer(T& value, const CLI::Validator& validator, const std::string& text) {
  CLI::App app;
  app.add_option("--x", value)->transform(validator);
  try {
    app.parse(std::vector<std::string>{text, "--x"});
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("numbers are read whole, or not at all", "[examples]") {
  CHECK(parse_number<int64_t>("-12") == -12);
  CHECK(parse_number<int64_t>("9223372036854775807") == std::numeric_limits<int64_t>::max());
  CHECK(parse_number<uint64_t>("18446744073709551615") == std::numeric_limits<uint64_t>::max());
  CHECK(parse_number<double>("1e-3") == 1e-3);
  for (const char* text :
       {"", " 1", "1 ", "+1", "0x10", "1e3", "1.5", "1,5", "1'000", "9223372036854775808", "one"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<int64_t>(text));
  }
  for (const char* text : {"-1", "18446744073709551616", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<uint64_t>(text));
  }
  for (const char* text : {"", "nan", "inf", "-inf", "1e400", "1e", "1.5x", " 1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<double>(text));
  }
}

TEST_CASE("options say what they take", "[examples]") {
  int64_t whole = 0;
  CHECK(answer(whole, whole_number(1, 100), "010").empty());
  CHECK(whole == 10);  // no octal number
  CHECK(answer(whole, whole_number(1, 100), "101") ==
        "--x: must be a whole number from 1 to 100, got \"101\"");
  CHECK(answer(whole, whole_number(1), "0") == "--x: must be a whole number of at least 1, got \"0\"");
  uint64_t seed = 0;
  CHECK(answer(seed, seed_number(), "18446744073709551615").empty());
  CHECK(seed == std::numeric_limits<uint64_t>::max());
  CHECK(answer(seed, seed_number(), "99999999999999999999") ==
        "--x: must be a whole number from 0 to 18446744073709551615, got \"99999999999999999999\"");
  double real = 0;
  CHECK(answer(real, positive_number(), "1e-8").empty());
  CHECK(real == 1e-8);
  CHECK(answer(real, positive_number(), "0") == "--x: must be a number above 0, got \"0\"");
  CHECK(answer(real, real_number(0, 1), "nan") == "--x: must be a number from 0 to 1, got \"nan\"");
  CHECK_FALSE(answer(real, fraction_below_one(), "1").empty());
  std::string text;
  CHECK(answer(text, not_empty(), "") == "--x: must not be empty");
}

TEST_CASE("lists are read strictly", "[examples]") {
  const auto given = [](const std::vector<std::string>& arguments) {
    CLI::App app;
    std::vector<std::string> values{"a"};
    add_list(app, "--x", values, "", {"a", "b", "c"});
    try {
      app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError& error) {
      return std::string(error.what());
    }
    std::string text;
    for (const std::string& value : values) text += value;
    return text;
  };
  CHECK(given({}) == "a");
  CHECK(given({"--x", "b,c"}) == "bc");
  CHECK(given({"--x", "b", "--x", "a"}) == "ba");
  CHECK(given({"--x", "b,b"}) == "--x: \"b\" is there twice");
  for (const char* text : {"", ",", "a,", "a,,b", "d", "a b"}) {
    CAPTURE(text);
    CHECK(given({"--x", text}) ==
          "--x: must be some of a, b, c, separated by commas, got \"" + std::string(text) + '"');
  }
}
