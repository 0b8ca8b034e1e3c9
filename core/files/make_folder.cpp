#include "pleat/core/files/make_folder.h"

#include "pleat/core/base/format.h"
#include "pleat/core/system/files.h"

namespace pleat {

void make_folder(const std::string& op, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check<FileError>(!error && std::filesystem::is_directory(folder, error),
                   "{}: cannot make the folder '{}': {}", op, folder.string(),
                   error ? system::text_of(error) : "there is a file of that name");
}

}  // namespace pleat
