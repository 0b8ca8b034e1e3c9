#pragma once

#include <array>
#include <filesystem>
#include <random>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

namespace pleat::test {

/// What a reader did with damaged files.
struct DamageReport {
  int loaded = 0;
  int refused = 0;
};

/// Gives `read(path)` every truncation of a valid file, the file with a byte too many, and `flips` copies
/// with one to four bytes changed. Each must load or throw FileError; anything else is a failed check. Files
/// of the truncated kind must not load when `every_byte_counts`.
template <class Read>
DamageReport damage(const std::vector<unsigned char>& valid, const std::filesystem::path& path, int flips,
                    const Read& read, bool every_byte_counts = true) {
  DamageReport report;
  const auto attempt = [&](const std::vector<unsigned char>& bytes) {
    pleat_test::write_bytes(path, bytes);
    try {
      read(path);
      ++report.loaded;
      return true;
    } catch (const FileError& error) {
      ++report.refused;
      // Which file, and where or why.
      if (std::string(error.what()).find(path.filename().string()) == std::string::npos) {
        FAIL_CHECK("the message must name the file, got: " << error.what());
      }
      return false;
    } catch (const std::exception& error) {
      FAIL_CHECK("must throw FileError, got: " << error.what());
      return false;
    }
  };

  for (std::size_t length = 0; length < valid.size(); ++length) {
    const bool loaded = attempt({valid.begin(), valid.begin() + static_cast<std::ptrdiff_t>(length)});
    if (loaded && every_byte_counts)
      FAIL_CHECK("loaded the first " << length << " of " << valid.size() << " bytes");
  }
  auto longer = valid;
  longer.push_back(0);
  attempt(longer);

  std::mt19937 random(1);
  // Bytes that matter to many formats, beside arbitrary ones.
  constexpr std::array<unsigned char, 6> special = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
  for (int i = 0; i < flips; ++i) {
    auto bytes = valid;
    for (auto change = 1 + random() % 4; change > 0; --change) {
      const auto pick = random();
      bytes[random() % bytes.size()] =
          pick % 3 == 0 ? special[pick / 3 % special.size()] : static_cast<unsigned char>(pick >> 8);
    }
    attempt(bytes);
  }
  return report;
}

}  // namespace pleat::test
