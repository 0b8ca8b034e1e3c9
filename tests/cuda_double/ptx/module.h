#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/tests/cuda_double/ptx/program.h"

/// PTX as nvcc puts it into a program, or as a text.

namespace cuda_double::ptx {

/// Of the module's variables, or a function of it.
struct Item {
  std::string_view text;  ///< from the directive on
  std::size_t body = 0;   ///< where the body begins in it; npos: it has none
};

class Module {
 public:
  explicit Module(std::string text);
  /// The text of the first PTX that lies uncompressed in what nvcc registers.
  static std::string text_of(const void* fat_binary);

  /// A kernel by its mangled name, translated at the first call. What cannot be executed ends the process.
  std::shared_ptr<const Program> program(const std::string& symbol);

  const Item* function(std::string_view name) const;
  /// Bytes and alignment of a variable in shared memory; nullptr: there is none.
  struct Shared {
    std::size_t bytes, alignment;
    bool dynamic;
  };
  const Shared* shared(std::string_view name) const;
  /// Where a variable of the device is; nullptr: there is none.
  std::byte* variable(std::string_view name) const;

 private:
  void add_item(std::string_view text, std::size_t body);
  void add_variable(std::string_view text);

  std::string text_;
  std::map<std::string_view, Item> functions_;
  std::map<std::string_view, Shared> shared_;
  std::map<std::string_view, std::byte*> variables_;
  std::map<std::string, std::shared_ptr<const Program>> programs_;
};

/// Whether an address lies in a variable of some module.
bool in_variable(const void* address);

/// parser.cpp: the kernel, or an error that says what cannot be executed.
std::shared_ptr<const Program> parse(const Module& module, const std::string& symbol, const Item& item);
/// `text` without comments, of the same length.
std::string without_comments(std::string text);

/// A variable as it is declared: ".shared .align 16 .b8 name[4096]".
struct Declaration {
  std::string_view name;
  std::size_t alignment = 1, element = 1, count = 1;
  bool open = false;  ///< name[]: the launch says how many
  std::string_view initial;

  std::size_t bytes() const { return element * count; }
};
Declaration declaration(std::string_view text);

}  // namespace cuda_double::ptx
