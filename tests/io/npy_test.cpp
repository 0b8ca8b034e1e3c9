#include "pleat/io/npy.h"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include <zlib.h>

#include "pleat/core/base/error.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/io/npz.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/damage.h"
#include "pleat/tests/file_fixture.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::test;
using namespace pleat_test;
using Catch::Matchers::Contains;

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
  check_message({0x93, 'N', 'U', 'M', 'P', 'Y', 4, 0, 2, 0, '{', '}'},
                "byte 6: version 4.0 of the .npy format is unknown");
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

TEST_CASE("npy: element types are read as NumPy names them", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.npy";
  const auto read = [&](const std::string& descr, std::size_t bytes) {
    write_bytes(path, npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,)}", bytes));
    return io::read_npy(path);
  };
  // Without a byte order, or with one that says nothing, elements lie as this machine has them.
  for (const auto& [descr, dtype, bytes] : {std::tuple<std::string, DType, std::size_t>{"f4", float32, 4},
                                            {"=f4", float32, 4},
                                            {"|f4", float32, 4},
                                            {"f8", float64, 8},
                                            {"f2", float16, 2},
                                            {"i1", int32, 1},
                                            {"i8", int64, 8},
                                            {"u2", int32, 2},
                                            {"?", boolean, 1},
                                            {"|?", boolean, 1},
                                            {"b1", boolean, 1},
                                            {"bool", boolean, 1},
                                            {"B", uint8, 1},
                                            {"<B", uint8, 1},
                                            {"float32", float32, 4},
                                            {"double", float64, 8},
                                            {"int16", int32, 2},
                                            {"q", int64, 8}}) {
    INFO(descr);
    CHECK(read(descr, bytes).dtype() == dtype);
  }
  CHECK(read(">i2", 2).to_vector<int>() == std::vector<int>{0x0101});
  CHECK(read(">i4", 4).item<int>() == 0x01010101);
  // What NumPy does not take.
  for (const char* descr :
       {"", "f", "<", "<float32", "F4", " f4", "f4 ", "4f4", "i3", "(2,)f4", "f4,f4", "f5"}) {
    INFO(descr);
    if (std::string(descr) == "f") continue;  // a name for float32
    CHECK_THROWS_AS(read(descr, 4), FileError);
  }
  // The remedy depends on what it is.
  const auto refusal = [&](const std::string& descr) {
    write_bytes(path, npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,)}", 8));
    return message_of(path);
  };
  CHECK_THAT(refusal("<c8"), Catch::Matchers::Contains("np.stack([a.real, a.imag], -1)"));
  CHECK_THAT(refusal("|O"), Catch::Matchers::Contains("a pickle, which is never run here"));
  CHECK_THAT(refusal("<U7"), Catch::Matchers::Contains("np.unique"));
  CHECK_THAT(refusal("<M8[ns]"), Catch::Matchers::Contains("np.int64"));
  CHECK_THAT(refusal("<f16"), Catch::Matchers::Contains("np.float64"));
  CHECK_THAT(refusal("<V2"), Catch::Matchers::Contains("bfloat16"));
}

TEST_CASE("npy: versions and shapes are what the format has", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.npy";
  const auto outcome = [&](const std::string& shape, char major = 1, char minor = 0) {
    auto bytes = npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}", 24);
    bytes[6] = static_cast<unsigned char>(major);
    bytes[7] = static_cast<unsigned char>(minor);
    if (major > 1) bytes.insert(bytes.begin() + 10, {0, 0});
    write_bytes(path, bytes);
    return message_of(path);
  };
  // A header need not be padded, nor end with a line break; a tuple may end with a comma.
  for (const char* shape : {"(6,)", "(6L,)", "(2, 3)", "(2, 3,)", "( 6 , )", "(1,1,6)"})
    CHECK(outcome(shape) == "no error");
  for (const char major : {'\1', '\2', '\3'}) {
    CHECK(outcome("(6,)", major) == "no error");
    CHECK_THAT(outcome("(6,)", major, 1), Catch::Matchers::Contains(".1 of the .npy format is unknown"));
  }
  CHECK_THAT(outcome("(6,)", 1, 7), Catch::Matchers::Contains("byte 6: version 1.7"));
  CHECK_THAT(outcome("(6,)", 0, 1), Catch::Matchers::Contains("version 0.1"));
  // In Python (6) is a number.
  CHECK_THAT(outcome("(6)"), Catch::Matchers::Contains("written with a comma: (6,)"));
  for (const char* shape :
       {"6", "[6]", "(,)", "(6,,)", "(06,)", "(6.0,)", "(-6,)", "('6',)", "(6,", "(2 3)", "(True,)"}) {
    INFO(shape);
    CHECK_THAT(outcome(shape), Catch::Matchers::Contains("x.npy"));
  }
  std::string deep = "(";
  for (int i = 0; i < 65; ++i) deep += "1,";
  CHECK_THAT(outcome(deep + ")"), Catch::Matchers::Contains("more than 64 dimensions"));
}

TEST_CASE("npy: memory is counted before it is taken", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.npy";
  // int8 becomes int32, and Fortran order is copied.
  write_bytes(path, npy("{'descr': '|i1', 'fortran_order': False, 'shape': (10, 10)}", 100));
  CHECK_THROWS_AS(io::read_npy(path, {.memory_limit = 399}), FileError);
  CHECK_NOTHROW(io::read_npy(path, {.memory_limit = 400}));
  write_bytes(path, npy("{'descr': '|u1', 'fortran_order': True, 'shape': (10, 10)}", 100));
  CHECK_THROWS_AS(io::read_npy(path, {.memory_limit = 199}), FileError);
  CHECK_NOTHROW(io::read_npy(path, {.memory_limit = 200}));
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

namespace {

void append(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
}

std::string deflated(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct Member {
  std::string name, data, packed;
};

// A zip of deflated members. With `overlap` every entry of the directory has the bytes of the first one's
// local header, by which a bomb makes few bytes count often.
std::string zip_of(const std::vector<Member>& members, bool overlap = false) {
  std::string file, directory;
  for (const Member& member : members) {
    const std::size_t at = overlap ? 0 : file.size();
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(member.data.data()), static_cast<uInt>(member.data.size()));
    std::string fields;
    for (const uint64_t value : {20, 0, 8, 0, 0}) append(fields, value, 2);
    append(fields, crc, 4);
    append(fields, member.packed.size(), 4);
    append(fields, member.data.size(), 4);
    append(fields, member.name.size(), 2);
    append(fields, 0, 2);
    if (!overlap || file.empty()) file += "PK\x03\x04" + fields + member.name + member.packed;
    directory += "PK\x01\x02" + std::string("\x14\0", 2) + fields;
    for (const int bytes : {2, 2, 2, 4}) append(directory, 0, bytes);
    append(directory, at, 4);
    directory += member.name;
  }
  std::string end = "PK\x05\x06";
  append(end, 0, 4);
  append(end, members.size(), 2);
  append(end, members.size(), 2);
  append(end, directory.size(), 4);
  append(end, file.size(), 4);
  append(end, 0, 2);
  return file + directory + end;
}

Member zeros_member(const std::string& name, std::size_t bytes) {
  const auto start =
      npy("{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(bytes) + ",)}", 0);
  const std::string data = std::string(start.begin(), start.end()) + std::string(bytes, '\0');
  return {name + ".npy", data, deflated(data)};
}

}  // namespace

TEST_CASE("npz: an array is told by its content, whatever its name", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.npz";
  const Member ones = zeros_member("a", 3), more = zeros_member("b/c", 2);
  const auto plain = [](const std::string& name, const std::string& text) {
    return Member{name, text, deflated(text)};
  };
  const Member bare{"a", ones.data, ones.packed}, note = plain("note.txt", "no array"), none = plain("n", "");
  write_bytes(path, zip_of({bare, note, more, none, plain("folder/", "")}));
  const io::NpzReader reader(path);
  CHECK(reader.names() == std::vector<std::string>{"a", "b/c"});
  CHECK(reader.read("a").shape() == Shape{3});
  CHECK(io::read_npz(path).size() == 2);
  write_bytes(path, zip_of({bare, ones}));
  CHECK_THROWS_WITH(io::read_npz(path), Contains("there are two arrays 'a', with .npy and without"));
  write_bytes(path, zip_of({note}));
  CHECK_THROWS_WITH(io::read_npz(path),
                    Contains("none of its entries is a .npy file; it looks like a zip archive"));
  write_bytes(path, zip_of({plain("archive/data.pkl", "\x80\x02}"), plain("archive/data/0", "12345678")}));
  CHECK_THROWS_WITH(io::read_npz(path), Contains("none of its entries") && Contains("a PyTorch checkpoint") &&
                                            Contains("safetensors.torch.save_file"));
}

TEST_CASE("npz: a bomb is refused before its memory is taken", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.npz";
  const auto message = [&](ReadOptions options) {
    try {
      io::read_npz(path, options);
    } catch (const FileError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  // 300 MB from 300 KB, above the default of 256 MiB.
  const Member large = zeros_member("a", 300'000'000);
  write_bytes(path, zip_of({large}));
  REQUIRE(std::filesystem::file_size(path) < 400'000);
  reset_peak_statistics();
  const int64_t before = allocator_statistics().peak;
  CHECK_THAT(message({}), Catch::Matchers::Contains("if you trust it, raise the limit: {.memory_limit = " +
                                                    std::to_string(large.data.size()) + "}"));
  CHECK_THROWS_WITH(
      io::NpzReader(path).read("a"),
      Catch::Matchers::Contains("entry 'a.npy'") && Catch::Matchers::Contains("{.memory_limit = 300000000}"));
  CHECK(allocator_statistics().peak == before);
  // All arrays together, with their headers, count for read_npz, each by itself for the reader.
  const Member a = zeros_member("a", 1000), b = zeros_member("b", 1000), c = zeros_member("c", 1000);
  write_bytes(path, zip_of({a, b, c}));
  const auto all = static_cast<int64_t>(a.data.size() + b.data.size() + c.data.size());
  CHECK_THAT(message({.memory_limit = all - 1}),
             Catch::Matchers::Contains("what the archive holds takes 3.1 KiB") &&
                 Catch::Matchers::Contains("{.memory_limit = " + std::to_string(all) + "}"));
  CHECK(message({.memory_limit = all}) == "no error");
  CHECK(io::NpzReader(path, {.memory_limit = 2000}).read("c").numel() == 1000);
  // None of many is read before all of them are counted.
  std::vector<Member> many;
  for (int i = 0; i < 3000; ++i) many.push_back(zeros_member("m" + std::to_string(i), 100'000));
  write_bytes(path, zip_of(many));
  reset_peak_statistics();
  CHECK_THAT(message({}), Catch::Matchers::Contains("what the archive holds takes 286"));
  CHECK(allocator_statistics().peak == before);
}

TEST_CASE("npz: members must not share bytes", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.npz";
  std::vector<Member> members;
  for (const char* name : {"a", "b", "c"}) {
    members.push_back(zeros_member("a", 1000));
    members.back().name = std::string(name) + ".npy";
  }
  write_bytes(path, zip_of(members));
  CHECK(io::read_npz(path).size() == 3);
  write_bytes(path, zip_of(members, true));
  CHECK_THROWS_WITH(io::NpzReader(path), Catch::Matchers::Contains("entries must not share bytes"));
  // A size that reaches into the next member, or into the directory.
  std::string bytes = zip_of(members);
  const std::size_t second = bytes.find("PK\x01\x02");
  bytes[second + 20] = static_cast<char>(bytes[second + 20] + 1);
  write_bytes(path, bytes);
  CHECK_THROWS_WITH(io::NpzReader(path), Catch::Matchers::Contains("reaches into what begins at byte"));
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
