#include "pleat/core/base/bytes.h"

#include "pleat/tests/catch.h"

using pleat::text_of_bytes;

TEST_CASE("sizes are written with the unit that fits", "[core]") {
  CHECK(text_of_bytes(0) == "0 bytes");
  CHECK(text_of_bytes(1023) == "1023 bytes");
  CHECK(text_of_bytes(1024) == "1.0 KiB");
  CHECK(text_of_bytes(1536) == "1.5 KiB");
  CHECK(text_of_bytes((1 << 20) - 1) == "1.0 MiB");
  CHECK(text_of_bytes(int64_t{85} << 30) == "85.0 GiB");
  CHECK(text_of_bytes(int64_t{1} << 60) == "1024.0 PiB");
}
