#include "pleat/onnx/model_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/files/protobuf.h"
#include "pleat/core/tensor/create.h"

// Fields have the numbers of onnx.proto.

namespace pleat::onnx {
namespace {

using protobuf::Reader;

struct TypeRow {
  int64_t number;
  const char* name;
  std::optional<DType> dtype;
  int bits;  ///< in a file
};
constexpr std::array types{TypeRow{1, "float", float32, 32},   TypeRow{2, "uint8", uint8, 8},
                           TypeRow{3, "int8", int32, 8},       TypeRow{4, "uint16", int32, 16},
                           TypeRow{5, "int16", int32, 16},     TypeRow{6, "int32", int32, 32},
                           TypeRow{7, "int64", int64, 64},     TypeRow{8, "string", {}, 0},
                           TypeRow{9, "bool", boolean, 8},     TypeRow{10, "float16", float16, 16},
                           TypeRow{11, "double", float64, 64}, TypeRow{12, "uint32", int64, 32},
                           TypeRow{13, "uint64", int64, 64},   TypeRow{14, "complex64", {}, 0},
                           TypeRow{15, "complex128", {}, 0},   TypeRow{16, "bfloat16", bfloat16, 16},
                           TypeRow{17, "float8e4m3fn", {}, 0}, TypeRow{18, "float8e4m3fnuz", {}, 0},
                           TypeRow{19, "float8e5m2", {}, 0},   TypeRow{20, "float8e5m2fnuz", {}, 0},
                           TypeRow{21, "uint4", int32, 4},     TypeRow{22, "int4", int32, 4}};

const TypeRow* row_of(int64_t type) {
  const auto* row =
      std::find_if(types.begin(), types.end(), [&](const TypeRow& r) { return r.number == type; });
  return row == types.end() ? nullptr : row;
}

/// Numbers of one type in a file as those of another.
template <class From, class To>
void convert(const char* from, To* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    to[i] = static_cast<To>(value);
  }
}

/// Two numbers of 4 bits in each byte, the lower half first.
void unpack(std::string_view bytes, bool is_signed, int32_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[static_cast<std::size_t>(i / 2)]);
    const int32_t value = i % 2 == 0 ? byte & 15 : byte >> 4;
    to[i] = is_signed && value > 7 ? value - 16 : value;
  }
}

class ModelReader {
 public:
  ModelReader(const std::filesystem::path& path, ReadOptions options)
      : path_(path), file_("import_onnx", path, options), memory_(file_.memory()), options_(options) {}

  /// f of all bytes.
  template <class F>
  auto read(const F& f) {
    return reading(file_.name(), [&] {
      const auto map = file_.map();
      return f({reinterpret_cast<const char*>(map.get()), static_cast<std::size_t>(file_.size())});
    });
  }

  ModelFile model() {
    return read([&](std::string_view bytes) { return model_of(bytes); });
  }
  FileTensor tensor() {
    return read([&](std::string_view bytes) { return tensor_of(bytes, file_.name()).second; });
  }

 private:
  Reader reader(std::string_view message, const std::string& what) const {
    return {message, file_.name() + (what.empty() ? "" : ", " + what)};
  }

  void take_memory(int64_t bytes, const std::string& what) {
    check<FileError>(bytes <= memory_.left(), "{}: {}", file_.name(),
                     [&] { return above_memory_limit(what, bytes, memory_); });
    memory_.taken += bytes;
  }

  std::string text_of(const Reader& field) {
    take_memory(static_cast<int64_t>(field.bytes().size()), "a text");
    return std::string(field.bytes());
  }

  ModelFile model_of(std::string_view bytes) {
    ModelFile model;
    bool has_graph = false;
    for (Reader field = reader(bytes, "damaged or no ONNX model"); field.next();) {
      if (field.number() == 1) model.ir_version = field.integer();
      if (field.number() == 2) model.producer = text_of(field);
      if (field.number() == 7) {
        model.graph = graph_of(field.bytes(), 0);
        has_graph = true;
      }
      if (field.number() == 8) read_opset(field.bytes(), model.opsets);
      if (field.number() == 14) model.metadata.insert(entry_of(field.bytes()));
      if (field.number() == 25) model.functions.push_back(function_of(field.bytes()));
    }
    check<FileError>(has_graph && model.ir_version >= 1 && !model.opsets.empty(),
                     "{}: is no ONNX model: it has no {}", file_.name(),
                     !has_graph             ? "graph"
                     : model.opsets.empty() ? "version of the operators"
                                            : "version");
    return model;
  }

  void read_opset(std::string_view bytes, std::map<std::string, int64_t>& opsets) {
    std::string domain;
    int64_t version = 0;
    for (Reader field = reader(bytes, "opset_import"); field.next();) {
      if (field.number() == 1) domain = text_of(field);
      if (field.number() == 2) version = field.integer();
    }
    opsets.insert_or_assign(domain == "ai.onnx" ? "" : domain, version);
  }

  std::pair<std::string, std::string> entry_of(std::string_view bytes) {
    std::pair<std::string, std::string> entry;
    for (Reader field = reader(bytes, "metadata"); field.next();) {
      if (field.number() == 1) entry.first = text_of(field);
      if (field.number() == 2) entry.second = text_of(field);
    }
    return entry;
  }

  FileGraph graph_of(std::string_view bytes, int depth) {
    check<FileError>(depth <= 32, "{}: graphs are nested deeper than 32", file_.name());
    FileGraph graph;
    for (Reader field = reader(bytes, "the graph"); field.next();) {
      if (field.number() == 1) graph.nodes.push_back(node_of(field.bytes(), depth));
      if (field.number() == 2) graph.name = text_of(field);
      if (field.number() == 5) graph.initializers.push_back(tensor_of(field.bytes(), "an initializer"));
      if (field.number() == 11) graph.inputs.push_back(port_of(field.bytes()));
      if (field.number() == 12) graph.outputs.push_back(port_of(field.bytes()));
      if (field.number() == 13) {
        const FilePort value = port_of(field.bytes());
        graph.types.emplace(value.name, value.type);
      }
      check<FileError>(field.number() != 15,
                       "{}: has a sparse initializer, which import_onnx does not read; "
                       "export it as a dense one",
                       file_.name());
    }
    return graph;
  }

  FileFunction function_of(std::string_view bytes) {
    FileFunction function;
    for (Reader field = reader(bytes, "a function"); field.next();) {
      if (field.number() == 1) function.name = text_of(field);
      if (field.number() == 4) function.inputs.push_back(text_of(field));
      if (field.number() == 5) function.outputs.push_back(text_of(field));
      if (field.number() == 7) function.nodes.push_back(node_of(field.bytes(), 0));
      if (field.number() == 9) read_opset(field.bytes(), function.opsets);
      if (field.number() == 10) function.domain = text_of(field);
      if (field.number() == 11) function.defaults.push_back(attribute_of(field.bytes(), 0, function.name));
    }
    return function;
  }

  Node node_of(std::string_view bytes, int depth) {
    Node node;
    take_memory(static_cast<int64_t>(sizeof node), "a node");
    for (Reader field = reader(bytes, "a node"); field.next();) {
      if (field.number() == 1) node.inputs.push_back(text_of(field));
      if (field.number() == 2) node.outputs.push_back(text_of(field));
      if (field.number() == 3) node.name = text_of(field);
      if (field.number() == 4) node.op = text_of(field);
      if (field.number() == 7) node.domain = text_of(field);
      if (field.number() == 5) node.attributes.push_back(attribute_of(field.bytes(), depth, node.name));
      if (field.number() == 9) node.notes.insert(entry_of(field.bytes()));
    }
    if (node.domain == "ai.onnx") node.domain.clear();
    return node;
  }

  NodeAttribute attribute_of(std::string_view bytes, int depth, const std::string& node) {
    NodeAttribute attribute;
    take_memory(static_cast<int64_t>(sizeof attribute), "an attribute");
    int64_t type = 0;
    std::vector<int64_t> integers;
    std::vector<float> floats;
    std::vector<std::string> texts;
    std::string reference;
    for (Reader field = reader(bytes, "node '" + node + "', an attribute"); field.next();) {
      if (field.number() == 1) attribute.name = text_of(field);
      if (field.number() == 2) attribute.value = field.float_number();
      if (field.number() == 3) attribute.value = field.integer();
      if (field.number() == 4) attribute.value = text_of(field);
      if (field.number() == 5) attribute.value = tensor_of(field.bytes(), "node '" + node + "'").second;
      if (field.number() == 6)
        attribute.value = std::make_shared<FileGraph>(graph_of(field.bytes(), depth + 1));
      if (field.number() == 7) take_memory(8, "a number"), field.append(floats);
      if (field.number() == 8) take_memory(8, "a number"), field.append(integers);
      if (field.number() == 9) texts.push_back(text_of(field));
      if (field.number() == 20) type = field.integer();
      if (field.number() == 21) reference = text_of(field);
    }
    if (!reference.empty())
      attribute.value = attribute_reference + reference;
    else if (type == 7 || !integers.empty())
      attribute.value = std::move(integers);
    else if (type == 6 || !floats.empty())
      attribute.value = std::move(floats);
    else if (type == 8 || !texts.empty())
      attribute.value = std::move(texts);
    else if (type == 1 && !std::holds_alternative<float>(attribute.value))
      attribute.value = 0.0F;
    else if (type == 3 && !std::holds_alternative<std::string>(attribute.value))
      attribute.value = std::string();
    return attribute;
  }

  FilePort port_of(std::string_view bytes) {
    FilePort port;
    take_memory(static_cast<int64_t>(sizeof port), "an input");
    for (Reader field = reader(bytes, "an input or output"); field.next();) {
      if (field.number() == 1) port.name = text_of(field);
      if (field.number() != 2) continue;
      for (Reader kind = reader(field.bytes(), "the type of " + port.name); kind.next();) {
        if (kind.number() != 1) continue;
        for (Reader part = reader(kind.bytes(), "the type of " + port.name); part.next();) {
          if (part.number() == 1) port.type = part.integer();
          if (part.number() == 2) read_shape(part.bytes(), port);
        }
      }
    }
    return port;
  }

  void read_shape(std::string_view bytes, FilePort& port) {
    port.has_shape = true;
    for (Reader dim = reader(bytes, "the shape of " + port.name); dim.next();) {
      if (dim.number() != 1) continue;
      std::string size;
      take_memory(static_cast<int64_t>(sizeof size), "a size");
      for (Reader field = reader(dim.bytes(), "the shape of " + port.name); field.next();) {
        if (field.number() == 1) size = std::to_string(field.integer());
        if (field.number() == 2) size = text_of(field);
      }
      port.shape.push_back(size);
    }
  }

  std::pair<std::string, FileTensor> tensor_of(std::string_view bytes, const std::string& what) {
    std::string name;
    int64_t type = 0;
    std::vector<int64_t> dims, integers;
    std::vector<float> floats;
    std::vector<double> doubles;
    std::string_view raw;
    bool has_raw = false, outside = false;
    std::map<std::string, std::string> place;
    for (Reader field = reader(bytes, what); field.next();) {
      if (field.number() == 1) field.append(dims);
      if (field.number() == 2) type = field.integer();
      if (field.number() == 4) field.append(floats);
      if (field.number() == 5 || field.number() == 7 || field.number() == 11) field.append(integers);
      if (field.number() == 8) name = text_of(field);
      if (field.number() == 9) raw = field.bytes(), has_raw = true;
      if (field.number() == 10) field.append(doubles);
      if (field.number() == 13) place.insert(entry_of(field.bytes()));
      if (field.number() == 14) outside = field.integer() == 1;
    }
    const std::string where = fmt::format("{}, tensor '{}' of {}", file_.name(), name, what);
    const TypeRow* row = row_of(type);
    check<FileError>(row != nullptr && row->dtype, "{}: is of type {}, which Pleat does not have", where,
                     [&] { return type_name(type); });
    check<FileError>(dims.size() <= 64, "{}: has {} dimensions", where, dims.size());
    int64_t count = 1;
    for (const int64_t size : dims) {
      check<FileError>(size >= 0 && (count == 0 || size <= (int64_t{1} << 48) / std::max<int64_t>(count, 1)),
                       "{}: its shape {} is no shape of a tensor", where, dims);
      count *= size;
    }
    const int64_t size = (count * row->bits + 7) / 8;
    // Before memory is taken: a shape that the data do not fill.
    const auto given = static_cast<int64_t>(floats.size() + doubles.size() + integers.size());
    if (!outside && has_raw)
      check<FileError>(static_cast<int64_t>(raw.size()) == size,
                       "{}: its shape {} needs {} bytes, and it has {}", where, dims, size, raw.size());
    else if (!outside)
      check<FileError>(given == (row->bits == 4 ? (count + 1) / 2 : count),
                       "{}: its shape {} needs {} numbers, and it has {}", where, dims, count, given);
    // A tensor outside is as large as its file, however short this one is.
    std::optional<Place> outside_at;
    if (outside)
      outside_at = place_of(where, place, size);
    else
      take_memory(count * size_of(*row->dtype), fmt::format("tensor '{}'", name));
    const Tensor tensor = empty(Sizes(dims), {.dtype = *row->dtype, .device = Device()});
    const bool as_it_is = row->bits == 8 * size_of(*row->dtype) && row->dtype != boolean;
    if (outside && as_it_is) {
      outside_at->file->read_at(outside_at->offset, {tensor.raw(), static_cast<std::size_t>(size)}, where);
    } else if (outside) {
      std::string data(static_cast<std::size_t>(size), '\0');
      outside_at->file->read_at(outside_at->offset, std::as_writable_bytes(std::span(data)), where);
      fill_from_bytes(tensor, *row, data);
    } else if (has_raw) {
      fill_from_bytes(tensor, *row, raw);
    } else {
      fill_from_numbers(where, tensor, *row, floats, doubles, integers);
    }
    return {name, {tensor, type}};
  }

  /// Bytes in a file beside this one.
  struct Place {
    std::unique_ptr<InputFile> file;
    int64_t offset;
  };
  Place place_of(const std::string& where, std::map<std::string, std::string>& place, int64_t size) {
    namespace fs = std::filesystem;
    const fs::path location(place["location"]);
    const fs::path folder =
        fs::weakly_canonical(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
    const fs::path file = fs::weakly_canonical(folder / location);
    const bool inside =
        !location.empty() && location.is_relative() &&
        std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
    check<FileError>(inside, "{}: lies in '{}', which is not in the folder of the file", where,
                     place["location"]);
    const auto number = [&](const char* key, int64_t otherwise) {
      const auto found = place.find(key);
      if (found == place.end()) return otherwise;
      int64_t value = 0;
      for (const char c : found->second) {
        check<FileError>(c >= '0' && c <= '9' && value < int64_t{1} << 56, "{}: its {} '{}' is no number",
                         where, key, found->second);
        value = 10 * value + (c - '0');
      }
      return value;
    };
    auto data = std::make_unique<InputFile>("import_onnx", file, options_);
    const int64_t offset = number("offset", 0), length = number("length", size);
    check<FileError>(length == size, "{}: needs {} bytes, and says that it has {}", where, size, length);
    check<FileError>(offset <= data->size() && size <= data->size() - offset,
                     "{}: lies in '{}' from byte {} on, {} bytes, and that has {}", where, place["location"],
                     offset, size, data->size());
    return {std::move(data), offset};
  }

  static void fill_from_bytes(const Tensor& tensor, const TypeRow& row, std::string_view raw) {
    const int64_t count = tensor.numel();
    switch (row.number) {
      case 3:
        return convert<int8_t>(raw.data(), tensor.data<int32_t>(), count);
      case 4:
        return convert<uint16_t>(raw.data(), tensor.data<int32_t>(), count);
      case 5:
        return convert<int16_t>(raw.data(), tensor.data<int32_t>(), count);
      case 12:
        return convert<uint32_t>(raw.data(), tensor.data<int64_t>(), count);
      case 21:
      case 22:
        return unpack(raw, row.number == 22, tensor.data<int32_t>(), count);
      case 9:
        for (int64_t i = 0; i < count; ++i) tensor.data<bool>()[i] = raw[static_cast<std::size_t>(i)] != 0;
        return;
      default:
        if (!raw.empty()) std::memcpy(tensor.raw(), raw.data(), raw.size());
    }
  }

  static void fill_from_numbers(const std::string& where, const Tensor& tensor, const TypeRow& row,
                                const std::vector<float>& floats, const std::vector<double>& doubles,
                                const std::vector<int64_t>& integers) {
    const auto need = [&](bool holds) {
      check<FileError>(holds, "{}: its numbers are of another type than {}", where, row.name);
    };
    if (row.dtype == float32) {
      need(doubles.empty() && integers.empty());
      std::copy(floats.begin(), floats.end(), tensor.data<float>());
    } else if (row.dtype == float64) {
      need(floats.empty() && integers.empty());
      std::copy(doubles.begin(), doubles.end(), tensor.data<double>());
    } else {
      need(floats.empty() && doubles.empty());
      // The lower bytes of each are what a file has as bytes.
      const auto size = static_cast<std::size_t>(std::max(row.bits / 8, 1));
      std::string raw;
      for (const int64_t& number : integers) raw.append(reinterpret_cast<const char*>(&number), size);
      fill_from_bytes(tensor, row, raw);
    }
  }

  std::filesystem::path path_;
  InputFile file_;
  MemoryBudget memory_;
  ReadOptions options_;
};

}  // namespace

ModelFile read_model_file(const std::filesystem::path& path, ReadOptions options) {
  return ModelReader(path, options).model();
}

FileTensor read_tensor_file(const std::filesystem::path& path) { return ModelReader(path, {}).tensor(); }

std::string type_name(int64_t type) {
  const TypeRow* row = row_of(type);
  return row == nullptr ? std::to_string(type) : row->name;
}

std::optional<DType> dtype_of(int64_t type) {
  const TypeRow* row = row_of(type);
  return row == nullptr ? std::nullopt : row->dtype;
}

}  // namespace pleat::onnx
