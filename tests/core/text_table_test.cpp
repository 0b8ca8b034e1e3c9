#include "pleat/core/base/text_table.h"

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"

using namespace pleat;

TEST_CASE("a table's columns are as wide as their widest cell, and no line ends in spaces", "[core]") {
  TextTable table({{.left = true}, {.least = 6}, {.left = true}}, "  ", " | ");
  table.add_text("title, longer than any line of cells");
  table.add({"", "time"});
  table.add({"µs", "1", "note"});
  table.add_rule();
  table.add({"long", "1234567"}, "\x1b[1m");
  table.add_rule(true);
  CHECK(table.text() ==
        "title, longer than any line of cells\n"
        "       |    time |\n"
        "  µs   |       1 | note\n"
        "  ---- | ------- | ----\n"
        "\x1b[1m  long | 1234567 |\x1b[0m\n"
        "  ---------------------\n");
  CHECK_THROWS_WITH(table.add({"a", "b", "c", "d"}), "table: a line has at most 3 cells, got 4");
}

TEST_CASE("a table without lines or columns is empty, and the least width holds without cells", "[core]") {
  CHECK(TextTable(std::vector<TextTable::Column>{}).text().empty());
  TextTable table(std::vector<TextTable::Column>{{.least = 3}});
  table.add_rule();
  CHECK(table.text() == "---\n");
}

TEST_CASE("a table leaves out and wraps what does not fit", "[core]") {
  const auto table = [] {
    TextTable made({{.left = true, .wraps = 24}, {.importance = 2}, {.importance = 1}, {}}, " ");
    made.add_text("text is as it is");
    made.add({"what", "runs", "first", "median"});
    made.add_rule();
    made.add({"a name that takes more columns than are there", "12", "1 s", "2 s"});
    return made;
  };
  const auto text = [&](std::size_t width, const std::vector<std::string>& left_out) {
    TextTable fitted = table();
    CHECK(fitted.fit(width) == left_out);
    return fitted.text();
  };
  CHECK(text(80, {}) == table().text());
  CHECK(text(46, {}) ==
        "text is as it is\n"
        " what                    runs  first  median\n"
        " ----------------------  ----  -----  ------\n"
        " a name that takes more    12    1 s     2 s\n"
        " columns than are there\n");
  CHECK(text(45, {"first"}).find("runs") != std::string::npos);
  // The least that it can do: what has no importance stays.
  CHECK(text(10, {"first", "runs"}) ==
        "text is as it is\n"
        " what                    median\n"
        " ----------------------  ------\n"
        " a name that takes more     2 s\n"
        " columns than are there\n");
}

TEST_CASE("characters of several bytes and colours do not widen a column", "[core]") {
  CHECK(display_width("µs → 畳") == 6);
  CHECK(display_width("\x1b[1;32mok\x1b[0m") == 2);
  CHECK(display_width("a\x1b[3") == 1);
  TextTable table(std::vector<TextTable::Column>(1));
  table.add({"\x1b[31m1\x1b[0m"});
  table.add({"22"});
  CHECK(table.text() == " \x1b[31m1\x1b[0m\n22\n");
}
