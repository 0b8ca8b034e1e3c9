#include "pleat/io/looks_like.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

namespace pleat::io {
namespace {

using namespace std::string_view_literals;

constexpr int64_t enough = 1024;  // bytes

constexpr const char* pickle_remedy =
    "which holds a program and is never run here: save its tensors in Python by "
    "safetensors.torch.save_file(torch.load(path, weights_only=True), 'x.safetensors')";

struct Kind {
  std::string_view start;
  const char* what;
  const char* remedy;
};

constexpr const char* onnx_remedy =
    "Pleat writes such files and reads none: save its weights in Python by "
    "safetensors.numpy.save_file({t.name: onnx.numpy_helper.to_array(t) for t in "
    "onnx.load(path).graph.initializer}, 'x.safetensors')";

constexpr const char* tensorflow_remedy =
    "save its variables in Python by numpy.savez(path, **{v.name: v.numpy() for v in model.variables})";

constexpr const char* savez = "save its arrays in Python by numpy.savez(path, name=array)";

// Longer beginnings before shorter ones.
constexpr std::array kinds = {
    Kind{"\x93NUMPY"sv, "a .npy file", "io::read_npy reads it"},
    Kind{"version https://git-lfs"sv, "a pointer of Git LFS",
         "not the file itself: run `git lfs pull`, or download the file from where it is"},
    Kind{"GGUF"sv, "a GGUF model", "convert it to safetensors"},
    Kind{"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", savez},
    Kind{"\x89PNG\r\n\x1a\n"sv, "a PNG picture", "data::read_image reads it"},
    Kind{"\xff\xd8\xff"sv, "a JPEG picture", "data::read_image reads it"},
    Kind{"GIF8"sv, "a GIF picture", "convert it to PNG"},
    Kind{"BM"sv, "a BMP picture", "convert it to PNG"},
    Kind{"RIFF"sv, "a RIFF file (WebP, WAV or AVI)", "convert a picture to PNG"},
    Kind{"II*\0"sv, "a TIFF picture", "convert it to PNG"},
    Kind{"MM\0*"sv, "a TIFF picture", "convert it to PNG"},
    Kind{"%PDF"sv, "a PDF document", "name the file with the data"},
    Kind{"\x1f\x8b"sv, "a gzip file", "unpack it by gunzip"},
    Kind{"\xfd"
         "7zXZ\0"sv,
         "an xz file", "unpack it by unxz"},
    Kind{"BZh"sv, "a bzip2 file", "unpack it by bunzip2"},
    Kind{"\x28\xb5\x2f\xfd"sv, "a zstd file", "unpack it by unzstd"},
    Kind{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive", "unpack it"},
    Kind{"\x7f"
         "ELF"sv,
         "a program", "name the file with the data"},
    Kind{"MATLAB 5.0"sv, "a MATLAB file", savez},
    Kind{"PAR1"sv, "a Parquet table", savez},
    Kind{"ARROW1"sv, "an Arrow table", savez},
    Kind{"SQLite format 3"sv, "an SQLite database", savez},
    Kind{"model_checkpoint_path"sv, "TensorFlow's list of checkpoints", tensorflow_remedy},
    // SavedModel: schema version 1, then its graphs.
    Kind{"\x08\x01\x12"sv, "a TensorFlow SavedModel", tensorflow_remedy},
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string described(const char* what, const char* remedy) {
  return std::string("; it looks like ") + what + ": " + remedy;
}

std::string of_zip(std::string_view text) {
  // The name of the first entry is in the first bytes.
  if (contains(text, "/data.pkl") || contains(text, "/.format_version") || contains(text, ".pkl"))
    return std::string("; it looks like a PyTorch checkpoint (a zip with a pickle), ") + pickle_remedy;
  if (contains(text, ".npy")) return described("a .npz archive", "io::read_npz reads it");
  return described("a zip archive", "unpack it, and name the file in it");
}

bool is_pickle(std::string_view text) {
  // Protocol 2 and newer begin with their number, older ones with the opcodes of what they hold.
  if (text.size() >= 2 && text[0] == '\x80') return text[1] >= 2 && text[1] <= 5;
  constexpr std::array old = {"(dp"sv,  "(lp"sv, "ccopy_reg\n"sv, "cnumpy"sv, "ctorch"sv, "ccollections\n"sv,
                              "}q\0"sv, "]q\0"sv};
  return std::any_of(old.begin(), old.end(), [&](std::string_view start) { return text.starts_with(start); });
}

// The length of a header, far below 100 MB, then the header in JSON.
bool is_safetensors(std::string_view text) {
  return text.size() >= 10 && static_cast<unsigned char>(text[3]) < 5 && text.substr(4, 4) == "\0\0\0\0"sv &&
         text[8] == '{' && (text[9] == '"' || text[9] == '}');
}

// A protocol buffer: the version of the format (field 1; 3 in 2017, 13 in 2026), then another field of a
// model.
bool is_onnx(std::string_view text) {
  if (text.size() < 3 || text[0] != '\x08' || text[1] < 2 || text[1] > 64) return false;
  constexpr std::string_view others = "\x12\x1a\x22\x28\x32\x3a\x42\x72"sv;
  return others.find(text[2]) != std::string_view::npos;
}

std::string of_netpbm(char kind) {
  if (kind == '2' || kind == '5') return described("a PGM picture", "data::read_image reads it");
  if (kind == '3' || kind == '6') return described("a PPM picture", "data::read_image reads it");
  return described("a PBM or PAM picture", "convert it to PNG");
}

bool is_netpbm(std::string_view text) {
  return text.size() >= 3 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7' &&
         (text[2] == '#' || std::isspace(static_cast<unsigned char>(text[2])) != 0);
}

// Two zero bytes, the type of the elements, and how many dimensions there are.
bool is_idx(std::string_view text) {
  return text.size() >= 4 && text.starts_with("\0\0"sv) && text[2] >= 0x08 && text[2] <= 0x0E &&
         text[3] >= 1 && text[3] <= 4;
}

// ISO's box of media files, with the kind of file.
bool is_media(std::string_view text) { return text.size() >= 12 && text.substr(4, 4) == "ftyp"; }

bool is_tar(std::string_view text) { return text.size() >= 262 && text.substr(257, 5) == "ustar"; }

std::string of_text(std::string_view text) {
  text.remove_prefix(text.starts_with("\xef\xbb\xbf") ? 3 : 0);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text[0])) != 0) text.remove_prefix(1);
  std::string lower(text.substr(0, 256));
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower.starts_with("<!doctype html") || lower.starts_with("<html") || lower.starts_with("<head") ||
      (lower.starts_with('<') && contains(lower, "<html")))
    return described("a web page",
                     "the download gave a page instead of the file; open it in a browser, and take the link "
                     "behind its download button (on Hugging Face 'resolve' instead of 'blob')");
  if (lower.starts_with("<?xml") || lower.starts_with("<error"))
    return described("XML, perhaps a server's error message", "look into it, and download the file again");
  const auto printable = [](unsigned char c) { return c >= 0x20 || std::isspace(c) != 0; };
  const bool is_text = !text.empty() && std::all_of(text.begin(), text.end(), printable);
  if (!is_text) return "";
  if (text[0] == '{' || text[0] == '[')
    return described("JSON", contains(text, "weight_map")
                                 ? "the index of a model in several files; read the files that it names"
                                 : "name the file with the data");
  return described("text", "look into it, and name the file with the data");
}

}  // namespace

std::string looks_like(std::span<const std::byte> start) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.empty()) return "; it is empty";
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return of_zip(text);
  if (is_pickle(text))
    return std::string("; it looks like a pickle (a PyTorch checkpoint, for instance), ") + pickle_remedy;
  if (is_safetensors(text)) return described("a safetensors file", "io::read_safetensors reads it");
  if (is_onnx(text)) return described("an ONNX network", onnx_remedy);
  if (is_idx(text)) return described("an idx file", "data::read_idx reads it");
  if (is_netpbm(text)) return of_netpbm(text[1]);
  if (is_media(text)) return described("a HEIC or AVIF picture, or a film", "convert a picture to PNG");
  if (text.substr(0, 8).ends_with("TFL3"))
    return described("a TensorFlow Lite network", "save the weights that it was made from");
  if (is_tar(text)) return described("a tar archive", "unpack it by tar xf, and name the file in it");
  for (const Kind& kind : kinds)
    if (text.starts_with(kind.start)) return described(kind.what, kind.remedy);
  if (std::all_of(text.begin(), text.end(), [](char c) { return c == '\0'; }))
    return "; it begins with zeros only, as a download that broke off does: fetch it again";
  return of_text(text);
}

std::string looks_like(const InputFile& file) {
  std::vector<std::byte> start(static_cast<std::size_t>(std::min<int64_t>(file.size(), enough)));
  file.read_at(0, start, "its beginning");
  return looks_like(start);
}

std::string looks_like(ByteSource& source, std::span<const std::byte> start) {
  std::vector<std::byte> bytes(enough);
  std::copy(start.begin(), start.end(), bytes.begin());
  bytes.resize(start.size() + source.read(std::span(bytes).subspan(start.size())));
  return looks_like(bytes);
}

}  // namespace pleat::io
