#include "pleat/core/base/format.h"
#include "pleat/data/picture_formats.h"

namespace pleat::data {

Tensor decode_jpeg(const InputFile& file, std::span<const std::byte>) {
  fail<FileError>(
      "{}: is a JPEG, and this Pleat was built without libjpeg; install libjpeg-turbo's headers (Debian: "
      "libjpeg-dev) and build again, or convert the picture to PNG",
      file.name());
}

}  // namespace pleat::data
