#include "pleat/io/safetensors.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/damage.h"
#include "pleat/tests/file_fixture.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::test;
using namespace pleat_test;

namespace {

std::vector<unsigned char> safetensors(const std::string& header, std::size_t data_bytes) {
  std::vector<unsigned char> bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes.push_back(static_cast<unsigned char>(header.size() >> (8 * i)));
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), data_bytes, 1);
  return bytes;
}

}  // namespace

TEST_CASE("safetensors: what the public library writes is read", "[io]") {
  const TemporaryDirectory directory;
  for (const Json& file : fixture_cases("files", "safetensors")) {
    INFO(file.at("name"));
    write_bytes(directory / "x.safetensors", file_bytes(file));
    const auto content = io::read_safetensors(directory / "x.safetensors");
    CHECK(content.tensors.size() == file.at("arrays").size());
    for (const auto& [name, tensor] : content.tensors) {
      INFO(name);
      CHECK(holds(tensor, file.at("arrays").at(name)));
      if (name.find("int") != std::string::npos || name.find("float") != std::string::npos) {
        CHECK(pleat::name(tensor.dtype()) == name);
      }
    }
    if (file.at("name") == "all types") {
      CHECK(content.metadata ==
            std::map<std::string, std::string>{{"format", "pt"}, {"\u00fc", "\"quoted\"\n"}});
      CHECK(content.tensors.at("bool").dtype() == boolean);
    }
  }
}

TEST_CASE("safetensors: what is written comes back, aligned and always the same bytes", "[io]") {
  const TemporaryDirectory directory;
  std::map<std::string, Tensor> tensors;
  const Tensor x = rand({2, 3, 4, 5});
  for (const DType dtype : {boolean, uint8, int32, int64, bfloat16, float16, float32, float64}) {
    tensors["odd." + std::string(name(dtype))] = full({3}, 1, {.dtype = dtype});
  }
  tensors["channels_last"] = x.to(MemoryFormat::channels_last);
  tensors["expanded"] = x.as_strided({3, 2}, {0, 7}, 2);
  tensors["scalar"] = scalar(2.5);
  tensors["none"] = zeros({4, 0});
  tensors["\"\\\n\x01 \u4e2d\u6587 \U0001f600"] = tensor({1, 2});
  tensors[""] = tensor({3});
  const std::map<std::string, std::string> metadata = {{"epoch", "3"}, {"note", "\"a\"\n"}};

  io::write_safetensors(directory / "a", tensors, metadata);
  io::write_safetensors(directory / "b", tensors, metadata);
  CHECK(read_bytes(directory / "a") == read_bytes(directory / "b"));

  const auto content = io::read_safetensors(directory / "a");
  CHECK(content.metadata == metadata);
  REQUIRE(content.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    const Tensor read = content.tensors.at(name);
    CHECK(read.shape() == tensor.shape());
    CHECK(read.dtype() == tensor.dtype());
    CHECK(read.to_vector<double>() == tensor.to_vector<double>());
  }

  const auto bytes = read_bytes(directory / "a");
  const std::size_t length = bytes[0] + 256u * bytes[1];
  CHECK(length % 8 == 0);
  const auto header = Json::parse(bytes.begin() + 8, bytes.begin() + 8 + static_cast<std::ptrdiff_t>(length));
  for (const auto& [name, tensor] : tensors) {
    CHECK(header.at(name).at("data_offsets").at(0).get<int64_t>() % size_of(tensor.dtype()) == 0);
  }
}

TEST_CASE("safetensors: what cannot be written is refused, and nothing is left behind", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.safetensors";
  CHECK_THROWS_AS(io::write_safetensors(path, {{"__metadata__", tensor({1})}}), ValueError);
  CHECK_THROWS_AS(io::write_safetensors(path, {{"\xff", tensor({1})}}), ValueError);
  CHECK_THROWS_AS(io::write_safetensors(path, {}, {{"key", "\xc3"}}), ValueError);
  CHECK_THROWS_AS(io::write_safetensors(directory / "none" / "x", {}), FileError);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("safetensors: everything the format forbids is refused with file, offset and cause", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.safetensors";
  const auto check_message = [&](const std::vector<unsigned char>& bytes, const std::string& part) {
    write_bytes(path, bytes);
    std::string message = "no error";
    try {
      io::read_safetensors(path);
    } catch (const FileError& error) {
      message = error.what();
    }
    INFO(message);
    CHECK(message.find(part) != std::string::npos);
    CHECK(message.starts_with("read_safetensors: '" + path.string() + "', byte "));
  };
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"x":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::string good = one(R"("F32")", "[2]", "[0,8]");
  write_bytes(path, safetensors(good, 8));
  CHECK(io::read_safetensors(path).tensors.at("x").numel() == 2);
  // Empty tensors and tensors of rank 0 are allowed, as is space after the header.
  write_bytes(path, safetensors(one(R"("F32")", "[0,7]", "[0,0]") + "  ", 0));
  CHECK(io::read_safetensors(path).tensors.at("x").shape() == Shape{0, 7});
  write_bytes(path, safetensors(one(R"("F64")", "[]", "[0,8]"), 8));
  CHECK(io::read_safetensors(path).tensors.at("x").rank() == 0);

  // The header's length.
  check_message({1, 0, 0, 0, 0, 0, 0}, "truncated: the header's length needs 8 bytes");
  check_message({1, 0, 0, 0, 0, 0, 0, 0}, "truncated: the header needs 1 bytes");
  check_message({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'}, "too long");
  check_message({0x01, 0xe1, 0xf5, 0x05, 0, 0, 0, 0, '{', '}'}, "a header of 100000001 bytes is too long");
  check_message({0, 0, 0, 0, 0, 0, 0, 0}, "must start with '{'");
  // Space pads a header, nothing else does.
  write_bytes(path, safetensors(good + "       ", 8));
  CHECK(io::read_safetensors(path).tensors.at("x").numel() == 2);
  check_message(safetensors(good + std::string(3, '\0'), 8),
                "holds a zero byte; a header is padded with spaces");
  check_message(safetensors("{}" + std::string(1, '\0') + "{}", 0), "holds a zero byte");
  check_message(safetensors(good + "x", 8), "is not JSON");
  // Not the JSON it must be.
  check_message(safetensors(" {}", 0), "must start with '{'");
  check_message(safetensors("[]", 0), "must start with '{'");
  check_message(safetensors("{", 0), "is not JSON");
  check_message(safetensors("{} x", 0), "is not JSON");
  check_message(safetensors("{\"\xff\":1}", 0), "is not JSON");
  check_message(safetensors(good.substr(0, good.size() - 1) + "," + good.substr(1), 8),
                "has the key 'x' twice");
  check_message(safetensors(R"({"x":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4),
                "has the key 'dtype' twice");
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  check_message(safetensors("{\"x\":" + deep + "}", 0), "must be an object");
  check_message(safetensors("{\"x\":{\"a\":" + deep + "}}", 0), "nested too deeply");
  // Tensors.
  check_message(safetensors(R"({"x":1})", 0), "must be an object");
  check_message(safetensors(R"({"x":{"shape":[],"data_offsets":[0,4]}})", 4), "has no 'dtype'");
  check_message(safetensors(R"({"x":{"dtype":"F32","data_offsets":[0,4]}})", 4), "has no 'shape'");
  check_message(safetensors(R"({"x":{"dtype":"F32","shape":[]}})", 4), "has no 'data_offsets'");
  check_message(safetensors(one(R"("F9")", "[8]", "[0,8]"), 8),
                "the element type 'F9', which the safetensors format");
  check_message(safetensors(one(R"("f32")", "[8]", "[0,8]"), 8), "the element type 'f32'");
  check_message(safetensors(one("7", "[8]", "[0,8]"), 8), "the element type 7");
  check_message(safetensors(one("null", "[8]", "[0,8]"), 8), "the element type null");
  check_message(safetensors(one(R"("F4")", "[3]", "[0,2]"), 2), "does not end with a whole byte");
  check_message(safetensors(one(R"("F6_E2M3")", "[2]", "[0,2]"), 2), "does not end with a whole byte");
  std::vector<unsigned char> large = safetensors(one(R"("U64")", "[2]", "[0,16]"), 16);
  large.back() = 0x80;
  check_message(large, "is too large for int64");
  check_message(safetensors(one(R"("F32")", "2", "[0,8]"), 8), "must be a list");
  check_message(safetensors(one(R"("F32")", "[-2]", "[0,8]"), 8), "must consist of sizes");
  check_message(safetensors(one(R"("F32")", "[2.0]", "[0,8]"), 8), "must consist of sizes");
  check_message(safetensors(one(R"("F32")", "[18446744073709551615]", "[0,8]"), 8), "must consist of sizes");
  check_message(safetensors(one(R"("F32")", "[2]", "[0]"), 8), "must be two numbers");
  check_message(safetensors(one(R"("F32")", "[2]", "[-8,0]"), 8), "must be two numbers");
  check_message(safetensors(one(R"("F32")", "[2]", "[8,0]"), 8), "before its start");
  check_message(safetensors(one(R"("F32")", "[3]", "[0,8]"), 8),
                "has 12 bytes, but its data_offsets [0, 8] span 8");
  check_message(safetensors(one(R"("F32")", "[4294967296,4294967296]", "[0,8]"), 8),
                "larger than any memory");
  check_message(safetensors(one(R"("F32")", "[4611686018427387904,2]", "[0,8]"), 8),
                "larger than any memory");
  check_message(safetensors(one(R"("F32")", "[4611686018427387904]", "[0,0]"), 0), "larger than any memory");
  check_message(safetensors(one(R"("F32")", "[0,4294967296,4294967296]", "[0,0]"), 0),
                "larger than any memory");
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  check_message(safetensors(one(R"("U8")", ones + "]", "[0,1]"), 1), "has more than 64 dimensions");
  // Their places.
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  write_bytes(path, safetensors(two("[4,8]", "[0,4]"), 8));
  CHECK(io::read_safetensors(path).tensors.size() == 2);
  check_message(safetensors(two("[0,4]", "[2,6]"), 8), "without overlap or hole");
  check_message(safetensors(two("[0,4]", "[0,4]"), 8), "without overlap or hole");
  check_message(safetensors(two("[0,4]", "[6,10]"), 10), "without overlap or hole");
  check_message(safetensors(two("[2,6]", "[6,10]"), 10), "without overlap or hole");
  check_message(safetensors(good, 7), "truncated: the tensors need 8 bytes, but only 7 follow the header");
  check_message(safetensors(good, 9), "the tensors end here, but 1 more bytes follow");
  check_message(safetensors("{}", 1), "1 more bytes follow");
  // Metadata.
  check_message(safetensors(R"({"__metadata__":[]})", 0), "must be an object");
  check_message(safetensors(R"({"__metadata__":{"a":1}})", 0), "must hold strings only");
}

TEST_CASE("safetensors: types that no tensor has are converted, and the result says so", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.safetensors";
  const Json& file = fixture_case("files", "all other types");
  write_bytes(path, file_bytes(file));
  const auto content = io::read_safetensors(path);
  REQUIRE(content.tensors.size() == file.at("arrays").size());
  for (const auto& [name, tensor] : content.tensors) {
    INFO(name);
    CHECK(holds(tensor, file.at("arrays").at(name)));
  }
  const std::map<std::string, std::string> expected = {
      {"C64", "C64 to float32, with a last dimension of 2 for real and imaginary parts"},
      {"F4", "F4 to float32"},
      {"F8_E4M3", "F8_E4M3 to float32"},
      {"F8_E4M3FNUZ", "F8_E4M3FNUZ to float32"},
      {"F8_E5M2", "F8_E5M2 to float32"},
      {"F8_E5M2FNUZ", "F8_E5M2FNUZ to float32"},
      {"F8_E8M0", "F8_E8M0 to float32"},
      {"I8", "I8 to int32"},
      {"I16", "I16 to int32"},
      {"U16", "U16 to int32"},
      {"U32", "U32 to int64"},
      {"U64", "U64 to int64"}};
  CHECK(content.converted == expected);
  write_bytes(path, file_bytes(fixture_case("files", "all types")));
  CHECK(io::read_safetensors(path).converted.empty());
}

TEST_CASE("safetensors: small floating types have their infinities, NaN and zeros", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.safetensors";
  const auto value = [&](const std::string& type, int code) {
    auto bytes = safetensors(R"({"x":{"dtype":")" + type + R"(","shape":[1],"data_offsets":[0,1]}})", 1);
    bytes.back() = static_cast<unsigned char>(code);
    write_bytes(path, bytes);
    return io::read_safetensors(path).tensors.at("x").item<float>();
  };
  for (const int code : {0x7F, 0xFF}) CHECK(std::isnan(value("F8_E4M3", code)));
  CHECK(value("F8_E4M3", 0x7E) == 448);
  CHECK(value("F8_E5M2", 0x7C) == std::numeric_limits<float>::infinity());
  CHECK(value("F8_E5M2", 0xFC) == -std::numeric_limits<float>::infinity());
  for (const int code : {0x7D, 0x7F, 0xFD}) CHECK(std::isnan(value("F8_E5M2", code)));
  for (const char* type : {"F8_E4M3FNUZ", "F8_E5M2FNUZ"}) CHECK(std::isnan(value(type, 0x80)));
  CHECK(std::isnan(value("F8_E8M0", 0xFF)));
  CHECK(value("F8_E8M0", 0) == std::ldexp(1.0F, -127));
  CHECK(std::signbit(value("F8_E4M3", 0x80)));
}

TEST_CASE("safetensors: six bits are kept as bytes, with a word", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.safetensors";
  write_bytes(path, safetensors(R"({"x":{"dtype":"F6_E3M2","shape":[2,4],"data_offsets":[0,6]}})", 6));
  const auto content = io::read_safetensors(path);
  CHECK(content.tensors.at("x").dtype() == uint8);
  CHECK(content.tensors.at("x").shape() == Shape{6});
  CHECK_THAT(content.converted.at("x"), Catch::Matchers::Contains("packed bytes"));
}

TEST_CASE("safetensors: what the format does not name is ignored", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.safetensors";
  const auto read = [&](const std::string& more) {
    write_bytes(path, safetensors(R"({"__metadata__":null,"x":{"a":1,"dtype":"U8",)" + more +
                                      R"("shape":[1],"b":null,"data_offsets":[0,1],"c":"d"}})",
                                  1));
    return io::read_safetensors(path).tensors.at("x").numel();
  };
  CHECK(read("") == 1);
  CHECK(read(R"("e":{"dtype":"F32","shape":[[{"f":[]}]]},"g":[1.5,true,"h",{"shape":{}}],)") == 1);
  CHECK(read(R"("e":1,"e":2,)") == 1);
  CHECK(read("\"e\":" + std::string(100, '[') + std::string(100, ']') + ",") == 1);
  CHECK_THROWS_AS(read("\"e\":" + std::string(200, '[') + std::string(200, ']') + ","), FileError);
}

TEST_CASE("safetensors: a hundred thousand tensors take seconds, not minutes", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.safetensors";
  std::map<std::string, Tensor> tensors;
  const Tensor one = tensor({1});
  for (int i = 0; i < 100'000; ++i) tensors.emplace("layer." + std::to_string(i), one);
  const auto start = std::chrono::steady_clock::now();
  io::write_safetensors(path, tensors);
  CHECK(io::read_safetensors(path).tensors.size() == tensors.size());
  // Quadratic, it took over a minute.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("safetensors: memory is counted before it is taken", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.safetensors";
  io::write_safetensors(path, {{"a", zeros({2000})}, {"b", zeros({2000})}});
  CHECK_THROWS_WITH(io::read_safetensors(path, {.memory_limit = 15999}),
                    Catch::Matchers::Contains("what the tensors become takes 15.6 KiB") &&
                        Catch::Matchers::Contains("{.memory_limit = 16000}"));
  CHECK(io::read_safetensors(path, {.memory_limit = 16000}).tensors.size() == 2);
}

TEST_CASE("safetensors: damaged files load or are refused", "[io]") {
  const TemporaryDirectory directory;
  const auto report = damage(file_bytes(fixture_case("files", "all types")), directory / "damaged", 5000,
                             [](const auto& path) { io::read_safetensors(path); });
  CHECK(report.refused > 3000);
  CHECK(report.loaded > 50);
}
