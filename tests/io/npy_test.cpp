#include "pleat/io/npy.h"

#include <cmath>
#include <limits>
#include <string>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/error.h"
#include "pleat/core/random.h"
#include "pleat/io/npz.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/damage.h"
#include "pleat/tests/file_fixture.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::test;
using namespace pleat_test;

namespace {

std::vector<unsigned char> npy(const std::string& header, std::size_t data_bytes) {
  std::string text = "\x93NUMPY";
  text += {'\x01', '\0', static_cast<char>(header.size()), '\0'};
  text += header;
  text.append(data_bytes, '\x01');
  return {text.begin(), text.end()};
}

template <class Error = FileError>
std::string message_of(const std::filesystem::path& path) {
  try {
    io::read_npy(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("npy: what NumPy writes is read", "[io]") {
  const TemporaryDirectory directory;
  for (const Json& file : fixture_cases("files", "npy")) {
    INFO(file.at("name"));
    write_bytes(directory / "x.npy", file_bytes(file));
    const Tensor read = io::read_npy(directory / "x.npy");
    CHECK(holds(read, file.at("arrays").at("array")));
    CHECK(read.is_contiguous());
  }
}

TEST_CASE("npy: types stay, or widen where no tensor has them", "[io]") {
  const TemporaryDirectory directory;
  for (const auto& [name, dtype] : {std::pair<std::string, DType>{"b1", boolean},
                                    {"u1", uint8},
                                    {"i1", int32},
                                    {"<u2", int32},
                                    {">i2", int32},
                                    {"<i4", int32},
                                    {"<u4", int64},
                                    {">i8", int64},
                                    {"<u8", int64},
                                    {"<f2", float16},
                                    {">f4", float32},
                                    {"<f8", float64}}) {
    INFO(name);
    write_bytes(directory / "x.npy", file_bytes(fixture_case("files", name)));
    CHECK(io::read_npy(directory / "x.npy").dtype() == dtype);
  }
}

TEST_CASE("npy: what is written is what NumPy writes", "[io]") {
  const TemporaryDirectory directory;
  for (const char* name : {"b1", "u1", "<i4", "<i8", "<f2", "<f4", "<f8", "rank 1", "empty"}) {
    INFO(name);
    const auto bytes = file_bytes(fixture_case("files", name));
    write_bytes(directory / "a.npy", bytes);
    io::write_npy(directory / "b.npy", io::read_npy(directory / "a.npy"));
    CHECK(read_bytes(directory / "b.npy") == bytes);
  }
}

TEST_CASE("npy: tensors of any strides come back row-major", "[io]") {
  const TemporaryDirectory directory;
  const Tensor x = rand({2, 3, 4, 5});
  const Tensor permuted = x.as_strided({5, 2, 3}, {1, 60, 20}, 0);
  for (const Tensor& tensor :
       {x, permuted, x.to(MemoryFormat::channels_last), x.as_strided({3, 2}, {0, 7}, 2)}) {
    io::write_npy(directory / "x.npy", tensor);
    const Tensor read = io::read_npy(directory / "x.npy");
    CHECK(read.shape() == tensor.shape());
    CHECK(read.to_vector<float>() == tensor.to_vector<float>());
  }
  CHECK_THROWS_AS(io::write_npy(directory / "y.npy", x.to(bfloat16)), DTypeError);
  CHECK_FALSE(std::filesystem::exists(directory / "y.npy"));
}

TEST_CASE("npy: special values keep their bits", "[io]") {
  const TemporaryDirectory directory;
  const double infinity = std::numeric_limits<double>::infinity();
  io::write_npy(directory / "x.npy", tensor({infinity, -infinity, std::nan(""), -0.0, 5e-324}, float64));
  const auto values = io::read_npy(directory / "x.npy").to_vector<double>();
  CHECK(values[0] == infinity);
  CHECK(values[1] == -infinity);
  CHECK(std::isnan(values[2]));
  CHECK(std::signbit(values[3]));
  CHECK(values[4] == 5e-324);
}

TEST_CASE("npy: bad files are refused with file, offset and cause", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.npy";
  const auto check_message = [&](const std::vector<unsigned char>& bytes, const std::string& part) {
    write_bytes(path, bytes);
    const std::string message = message_of(path);
    INFO(message);
    CHECK(message.find(part) != std::string::npos);
    CHECK(message.starts_with("read_npy: '" + path.string() + "'"));
    CHECK(message.find(", byte ") != std::string::npos);
  };
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  write_bytes(path, npy(good, 8));
  CHECK(io::read_npy(path).numel() == 2);

  check_message(npy(good, 7), "truncated: an array of shape [2] needs 8 bytes, but at most 7 are left");
  check_message(npy(good, 9), "the data ends here, but more bytes follow");
  check_message({'P', 'K', 3, 4, 0, 0, 0, 0}, "byte 0: is not a .npy file");
  check_message({}, "truncated");
  check_message({0x93, 'N', 'U', 'M', 'P', 'Y', 4, 0, 2, 0, '{', '}'}, "byte 6: version 4");
  check_message({0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0, 0, 0, 255},
                "header of 4278190080 bytes is too long");
  const auto with = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}", 8);
  };
  check_message(with("'<c8'", "False", "(1,)"), "'<c8' has no tensor type");
  check_message(with("'|O'", "False", "(1,)"), "'|O' has no tensor type");
  check_message(with("'<U2'", "False", "(1,)"), "'<U2' has no tensor type");
  check_message(with("[('a', '<f4'), ('b', '<f4')]", "False", "(1,)"), "structured");
  check_message(with("'<f4'", "0", "(2,)"), "True or False");
  check_message(with("'<f4'", "False", "(-2,)"), "[0, 2^63)");
  check_message(with("'<f4'", "False", "(9223372036854775808,)"), "[0, 2^63)");
  check_message(with("'<f4'", "False", "(4294967296, 4294967296)"), "larger than any memory");
  check_message(with("'<f4'", "False", "(0, 4294967296, 4294967296)"), "larger than any memory");
  check_message(with("'<f4'", "False", "(1099511627776,)"), "truncated");
  check_message(with("'<f4'", "False", "2"), "must have '(' here");
  check_message(npy("{'descr': '<f4', 'shape': (2,)}", 8), "must have the keys");
  check_message(npy("{'descr': '<f4', 'descr': '<f4', 'shape': (2,)}", 8), "unknown or given twice");
  check_message(npy(good + "x", 8), "text follows");
  std::vector<unsigned char> large = npy("{'descr': '<u8', 'fortran_order': False, 'shape': (2,)}", 16);
  large.back() = 0x80;
  check_message(large, "is too large for int64");

  CHECK(message_of(directory / "none.npy").find("cannot open: No such file") != std::string::npos);
  CHECK(message_of(directory.path()).find("is not a regular file") != std::string::npos);
}

TEST_CASE("npy: damaged files load or are refused", "[io]") {
  const TemporaryDirectory directory;
  for (const char* name : {"b1", ">u8", "fortran order"}) {
    const auto report = damage(file_bytes(fixture_case("files", name)), directory / "damaged", 3000,
                               [](const auto& path) { io::read_npy(path); });
    CHECK(report.refused > 500);
    CHECK(report.loaded > 0);
  }
}

TEST_CASE("npz: what NumPy writes is read", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.npz";
  for (const Json& file : fixture_cases("files", "npz")) {
    INFO(file.at("name"));
    write_bytes(path, file_bytes(file));
    const auto arrays = io::read_npz(path);
    CHECK(arrays.size() == file.at("arrays").size());
    for (const auto& [name, array] : arrays) CHECK(holds(array, file.at("arrays").at(name)));
  }
}

TEST_CASE("npz: single arrays by name", "[io]") {
  const TemporaryDirectory directory;
  write_bytes(directory / "x.npz", file_bytes(fixture_case("files", "streamed")));
  const io::NpzReader reader(directory / "x.npz");
  CHECK(reader.names() == std::vector<std::string>{"images", "labels", "a/b with spaces"});
  CHECK(reader.contains("labels"));
  CHECK_FALSE(reader.contains("notes"));
  CHECK(reader.read("labels").to_vector<int64_t>() == std::vector<int64_t>{3, 1, 2, 9, 0});
  try {
    reader.read("lables");
    FAIL("no error");
  } catch (const ValueError& error) {
    CHECK(std::string(error.what()).find("no array 'lables', but: images, labels, a/b with spaces") !=
          std::string::npos);
  }
}

TEST_CASE("npz: an array that does not have its checksum is refused", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.npz";
  auto bytes = file_bytes(fixture_case("files", "stored"));
  // A byte within the pixels of the first array, which is stored as it is.
  bytes[300] ^= 1;
  write_bytes(path, bytes);
  CHECK_NOTHROW(io::NpzReader(path).read("labels"));
  try {
    io::read_npz(path);
    FAIL("no error");
  } catch (const FileError& error) {
    CHECK(std::string(error.what()).find("entry 'images.npy', byte 428: the entry is damaged: its CRC") !=
          std::string::npos);
  }
}

TEST_CASE("npz: damaged files load or are refused", "[io]") {
  const TemporaryDirectory directory;
  for (const char* name : {"stored", "deflated", "streamed"}) {
    INFO(name);
    const auto report = damage(file_bytes(fixture_case("files", name)), directory / "damaged", 3000,
                               [](const auto& path) { io::read_npz(path); });
    CHECK(report.refused > 2000);
  }
}
