// CSV files. Columns of text that are written read back as they were.
#include "pleat/io/csv.h"

#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

namespace {

/// All columns as text, under numbers as names.
io::Table texts(const std::filesystem::path& path, const std::vector<std::string>& names, bool header) {
  io::ReadCsvOptions options{.header = header, .names = names, .memory_limit = fuzz::memory_limit};
  for (const std::string& name : names) options.dtype[name] = io::ColumnType::text;
  return io::read_csv(path, options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const fuzz::InputAsFile file(data, size);
  for (const bool mask : {false, true})
    fuzz::accepts([&] {
      const io::Table table = io::read_csv(file.path(), {.mask = mask, .memory_limit = fuzz::memory_limit});
      for (const std::string& name : table.columns())
        if (table.dtype(name) == io::ColumnType::text)
          fuzz::require(table.factorize(name).codes.numel() == table.rows(), "csv: rows without a class");
        else
          fuzz::require(table.to_tensor({name}).numel() == table.rows(), "csv: rows without a number");
    });
  fuzz::accepts([&] {
    const std::vector<std::string> names =
        io::read_csv(file.path(), {.header = false, .memory_limit = fuzz::memory_limit}).columns();
    const io::Table table = texts(file.path(), names, false);
    const auto copy = fuzz::scratch_folder() / "copy.csv";
    io::CsvWriter writer(copy, names);
    for (int64_t row = 0; row < table.rows(); ++row) {
      std::vector<io::CsvWriter::Value> cells;
      for (const std::string& name : names)
        cells.emplace_back(table.text(name)[static_cast<std::size_t>(row)]);
      writer.row(cells);
    }
    // A line of one empty cell is skipped.
    if (names.size() == 1) return;
    const io::Table back = texts(copy, names, true);
    for (const std::string& name : names)
      fuzz::require(back.text(name) == table.text(name), "csv: other cells after writing and reading");
  });
  return 0;
}
