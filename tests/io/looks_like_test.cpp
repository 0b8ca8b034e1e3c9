#include "pleat/io/looks_like.h"

#include <string>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/datasets.h"
#include "pleat/data/image.h"
#include "pleat/io/npy.h"
#include "pleat/io/npz.h"
#include "pleat/io/safetensors.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/file_fixture.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::test;
using namespace pleat_test;
using Catch::Matchers::Contains;
using namespace std::string_literals;

namespace {

// The beginning of a zip whose first entry has this name.
std::string zip(const std::string& name) {
  return "PK\x03\x04"s + std::string(22, '\0') + static_cast<char>(name.size()) + "\0\0\0"s + name +
         std::string(50, 'x');
}

template <class Read>
std::string message_of(const Read& read) {
  try {
    read();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a file that is another one is told by its first bytes, with what to do", "[io]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x";
  struct Example {
    std::string bytes;
    const char* what;
    const char* remedy;
  };
  const std::vector<Example> examples = {
      {zip("archive/data.pkl"), "a PyTorch checkpoint (a zip with a pickle)", "safetensors.torch.save_file"},
      {zip("model/.format_version"), "a PyTorch checkpoint", "safetensors.torch.save_file"},
      {zip("x.txt"), "a zip archive", "unpack it"},
      {"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8P\x19."s, "a pickle", "safetensors.torch.save_file"},
      {"(dp0\nS'weight'\np1\n", "a pickle", "never run"},
      {"ccopy_reg\n_reconstructor\np0\n", "a pickle", "never run"},
      {"\x08\x08\x12\x07pytorch\x1a\x05"
       "2.5.1:\x92\x01\n"s,
       "an ONNX network", "safetensors.numpy.save_file"},
      {"\x08\x07\x3a\x10\n\x04node"s, "an ONNX network", "onnx.load(path)"},
      {"\x08\x01\x12\xf3\x02\n\x1c\0"s, "a TensorFlow SavedModel", "numpy.savez"},
      {"model_checkpoint_path: \"model.ckpt-10\"\n", "TensorFlow's list", "numpy.savez"},
      {"\x1c\0\0\0TFL3\x14\0"s, "a TensorFlow Lite network", "made from"},
      {"P4\n8 1\n\xff", "a PBM or PAM picture", "convert it to PNG"},
      {"\0\0\0\x1c"
       "ftypheic\0\0\0\0"s,
       "a HEIC or AVIF picture", "convert a picture to PNG"},
      {"PAR1\x15\x04\x15\x10", "a Parquet table", "numpy.savez"},
      {"\x80\x04\x95\x10\x00\x00\x00\x00\x00"s, "a pickle", "never run"},
      {"<!DOCTYPE html><html><body>Sign in</body></html>", "a web page", "download"},
      {"\n  <html lang=en>", "a web page", "'resolve'"},
      {"<?xml version='1.0'?><Error><Code>AccessDenied</Code>", "XML", "download the file again"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS", "git lfs pull"},
      {"GGUF\x03\0\0\0"s, "a GGUF model", "convert it"},
      {"\x89HDF\r\n\x1a\n\0\0"s, "an HDF5 file", "numpy.savez"},
      {"%PDF-1.7", "a PDF", "name the file"},
      {"BZh91AY&SY", "a bzip2 file", "bunzip2"},
      {"{\"metadata\": {}, \"weight_map\": {\"a\": \"model-1.safetensors\"}}", "JSON",
       "the files that it names"},
      {"epoch,loss\n1,0.5\n", "text", "name the file"},
      {std::string(100, '\0'), "begins with zeros only", "fetch it again"},
  };
  for (const Example& example : examples) {
    write_bytes(path, example.bytes);
    for (const std::string& message :
         {message_of([&] { io::read_safetensors(path); }), message_of([&] { io::read_npy(path); }),
          message_of([&] { data::read_image(path); }), message_of([&] { io::read_npz(path); })}) {
      // An archive that goes on as one is a truncated archive to read_npz.
      if (message.starts_with("read_npz") && example.bytes.starts_with("PK")) continue;
      CHECK_THAT(message, Contains(example.what) && Contains(example.remedy) && Contains(path.string()));
    }
  }
}

TEST_CASE("files of other readers of Pleat's name the right one", "[io]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x";
  io::write_npy(path, zeros({3}));
  CHECK_THAT(message_of([&] { io::read_safetensors(path); }), Contains("io::read_npy reads it"));
  CHECK_THAT(message_of([&] { io::read_npz(path); }), Contains("io::read_npy reads it"));
  CHECK_THAT(message_of([&] { data::read_idx(path); }), Contains("io::read_npy reads it"));
  write_bytes(path, file_bytes(fixture_case("files", "stored")));
  CHECK_THAT(message_of([&] { io::read_npy(path); }), Contains("a .npz archive: io::read_npz reads it"));
  CHECK_THAT(message_of([&] { io::read_safetensors(path); }), Contains("io::read_npz reads it"));
  write_bytes(path, file_bytes(fixture_case("files", "rgb.png")));
  CHECK_THAT(message_of([&] { io::read_safetensors(path); }), Contains("data::read_image reads it"));
  CHECK_THAT(message_of([&] { data::read_idx(path); }), Contains("data::read_image reads it"));
  io::write_safetensors(path, {{"w", zeros({3})}});
  for (const std::string& message :
       {message_of([&] { io::read_npy(path); }), message_of([&] { io::read_npz(path); }),
        message_of([&] { data::read_image(path); })})
    CHECK_THAT(message, Contains("a safetensors file: io::read_safetensors reads it"));
  write_bytes(path, file_bytes(fixture_case("files", "labels")));
  for (const std::string& message :
       {message_of([&] { io::read_npy(path); }), message_of([&] { io::read_safetensors(path); }),
        message_of([&] { data::read_image(path); })})
    CHECK_THAT(message, Contains("an idx file: data::read_idx reads it"));
  write_bytes(path, file_bytes(fixture_case("files", "rgb.ppm")));
  CHECK_THAT(message_of([&] { io::read_npy(path); }), Contains("a PPM picture: data::read_image reads it"));
  write_bytes(path, "");
  CHECK_THAT(message_of([&] { io::read_safetensors(path); }), Contains("it is empty"));
}
