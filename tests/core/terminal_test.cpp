#include "pleat/core/base/terminal.h"

#include <cstdlib>
#include <string>

#include "pleat/tests/catch.h"
#include "pleat/tests/system.h"

using pleat::wrapped;

TEST_CASE("text is broken between words", "[core]") {
  CHECK(wrapped("one two three", 0) == "one two three");
  CHECK(wrapped("one two three", 13) == "one two three");
  CHECK(wrapped("one two three", 12) == "one two\nthree");
  CHECK(wrapped("one incomprehensibilities three", 10) == "one\nincomprehensibilities\nthree");
  CHECK(wrapped("", 10).empty());
  CHECK(wrapped("one two\n\nthree four\n", 7) == "one two\n\nthree\nfour\n");
  CHECK(wrapped("µs µs µs", 5) == "µs µs\nµs");  // columns, not bytes
}

TEST_CASE("a line goes on below its second column, the text behind a dash, or its first word", "[core]") {
  CHECK(wrapped("  --op   one two three", 20) == "  --op   one two\n         three");
  CHECK(wrapped("- one two three", 9) == "- one two\n  three");
  CHECK(wrapped("    one two three", 11) == "    one two\n    three");
  // Not where the first column takes most of the line.
  CHECK(wrapped("a very long name  one two", 20) == "a very long name\none two");
  // Only a word that fits no line is broken within.
  CHECK(wrapped("see one,two,three", 8) == "see one,\ntwo,\nthree");
  CHECK(wrapped("see one,two", 8) == "see\none,two");
}

TEST_CASE("a page is as wide as COLUMNS says, or 80 columns, where there is no terminal", "[core]") {
  constexpr int file = 99;  // is open nowhere
  const char* const before = std::getenv("COLUMNS");
  const std::string kept = before != nullptr ? before : "";
  for (const auto& [value, width] : {std::pair("120", 120), {"", 80}, {"wide", 80}, {"-3", 80}, {"0", 80}}) {
    CAPTURE(value);
    pleat_test::set_variable("COLUMNS", value);
    CHECK(pleat::page_width(file) == width);
    CHECK(pleat::terminal_width(file) == 0);
  }
  pleat_test::set_variable("COLUMNS", before != nullptr ? kept.c_str() : nullptr);
}
