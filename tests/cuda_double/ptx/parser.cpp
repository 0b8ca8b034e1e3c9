// A kernel's text becomes a Program. Functions that it calls become part of it.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

#include <cxxabi.h>

#include "pleat/tests/cuda_double/finding.h"
#include "pleat/tests/cuda_double/ptx/machine.h"
#include "pleat/tests/cuda_double/ptx/module.h"
#include "pleat/tests/cuda_double/ptx/mutation.h"
#include "pleat/tests/cuda_double/ptx/opcode.h"
#include "pleat/tests/cuda_double/ptx/slots.h"

namespace cuda_double::ptx {

namespace {

const std::string refusal = "PTX that cannot be executed: ";

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// At commas that are in no brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> result;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      if (text[i] == '{' || text[i] == '[' || text[i] == '(') ++depth;
      if (text[i] == '}' || text[i] == ']' || text[i] == ')') --depth;
    }
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    const std::string_view part = trimmed(text.substr(begin, i - begin));
    if (!part.empty()) result.push_back(part);
    begin = i + 1;
  }
  return result;
}
std::vector<std::string_view> in_brackets(std::string_view text) {
  return parts_of(text.substr(1, text.size() - 2));
}

/// A statement: "@!%p1 add.s32 %r1, %r2, 3".
struct Statement {
  std::string_view text, guard, opcode;
  std::vector<std::string_view> operands;
};
Statement statement_of(std::string_view text) {
  Statement result{text, {}, {}, {}};
  if (text.starts_with('@')) {
    const auto end =
        static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_space) - text.begin());
    result.guard = text.substr(1, end - 1);
    text = trimmed(text.substr(end));
  }
  const auto end = static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_space) - text.begin());
  result.opcode = text.substr(0, end);
  result.operands = parts_of(text.substr(end));
  return result;
}

const std::map<std::string_view, std::pair<Special, uint8_t>>& specials() {
  static const std::map<std::string_view, std::pair<Special, uint8_t>> result = {
      {"%tid.x", {Special::thread_x, 4}},
      {"%tid.y", {Special::thread_y, 4}},
      {"%tid.z", {Special::thread_z, 4}},
      {"%ntid.x", {Special::threads_x, 4}},
      {"%ntid.y", {Special::threads_y, 4}},
      {"%ntid.z", {Special::threads_z, 4}},
      {"%ctaid.x", {Special::block_x, 4}},
      {"%ctaid.y", {Special::block_y, 4}},
      {"%ctaid.z", {Special::block_z, 4}},
      {"%nctaid.x", {Special::blocks_x, 4}},
      {"%nctaid.y", {Special::blocks_y, 4}},
      {"%nctaid.z", {Special::blocks_z, 4}},
      {"%laneid", {Special::lane, 4}},
      {"%warpid", {Special::warp, 4}},
      {"%nwarpid", {Special::warps, 4}},
      {"%lanemask_eq", {Special::lanes_equal, 4}},
      {"%lanemask_lt", {Special::lanes_below, 4}},
      {"%lanemask_le", {Special::lanes_to, 4}},
      {"%lanemask_gt", {Special::lanes_above, 4}},
      {"%lanemask_ge", {Special::lanes_from, 4}},
      {"%dynamic_smem_size", {Special::dynamic_shared, 4}},
      {"%clock", {Special::clock, 4}},
      {"%clock64", {Special::clock, 8}},
      {"%globaltimer", {Special::clock, 8}}};
  return result;
}

/// What a name means that is no register.
struct Symbol {
  Special where;  ///< constant: in shared memory (`in_shared`) or that of the device
  uint64_t value;
  bool in_shared = false, dynamic = false;
};

struct Scope {
  std::map<std::string_view, uint32_t> registers;
  std::map<std::string_view, uint8_t>
      series;  ///< "%r<9>" stands for %r0 ... %r8: bytes, by what comes before
  std::map<std::string_view, Symbol> symbols;
};

/// A function's body while it is translated.
struct Body {
  std::map<std::string_view, uint32_t> labels, tables;
  std::vector<std::pair<std::size_t, std::string_view>>
      branches;  ///< instructions and where they go; "": the end
  std::vector<std::pair<uint32_t, std::vector<std::string_view>>> listed;
};

class Parser {
 public:
  Parser(const Module& module, Program& program)
      : module_(module), program_(program), mutation_(program.symbol) {
    constant(0, 1);  // the predicate that is always true has number 0
  }

  void kernel(const Item& item) {
    scopes_.emplace_back();
    const std::string_view head = item.text.substr(0, item.body);
    kernel_parameters(head);
    if (const std::size_t at = head.find(".maxntid"); at != std::string_view::npos) {
      program_.most_threads = 1;
      for (const std::string_view part :
           parts_of(head.substr(at + 8, head.find_first_of(".{", at + 8) - at - 8)))
        program_.most_threads *= static_cast<unsigned>(std::strtoul(std::string(part).c_str(), nullptr, 10));
    }
    body(item, true);
    program_.static_shared = (program_.static_shared + 15) / 16 * 16;
    for (const std::size_t fixed : dynamic_) program_.fixed[fixed].value += program_.static_shared;
    program_.frame_bytes = (program_.frame_bytes + 15) / 16 * 16;
    assign_slots(program_, registers_);
  }

 private:
  // Names.

  uint32_t add_register(uint8_t bytes) {
    registers_.push_back({bytes, false});
    return static_cast<uint32_t>(registers_.size() - 1);
  }
  uint32_t fixed(unsigned bytes, Special what, uint64_t value) {
    const auto [found, is_new] =
        fixed_.try_emplace({bytes, what, value}, static_cast<uint32_t>(registers_.size()));
    if (is_new) {
      registers_.push_back({static_cast<uint8_t>(bytes), true});
      program_.fixed.push_back({found->second, bytes, what, value});
    }
    return found->second;
  }
  uint32_t constant(unsigned bytes, uint64_t value) {
    if (bytes < 8 && bytes > 0) value &= (uint64_t{1} << (8 * bytes)) - 1;
    return fixed(bytes, Special::constant, value);
  }
  /// For results that nobody reads.
  uint32_t sink(unsigned bytes) { return add_register(static_cast<uint8_t>(bytes)); }

  void declare_registers(std::string_view text) {
    const std::size_t space = text.find_first_of(" \t");
    const Type type = type_named(text.substr(1, space - 1));
    if (type == Type::none) throw Unsupported{".reg " + std::string(text)};
    const auto bytes = static_cast<uint8_t>(size_of(type));
    for (const std::string_view name : parts_of(text.substr(space))) {
      if (const std::size_t bracket = name.find('<'); bracket != std::string_view::npos)
        scopes_.back().series[name.substr(0, bracket)] = bytes;
      else
        scopes_.back().registers[name] = add_register(bytes);
    }
  }

  static constexpr uint32_t none = ~0u;
  uint32_t find_register(std::string_view name) {
    std::string_view stem = name;
    while (!stem.empty() && is_digit(stem.back())) stem.remove_suffix(1);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->registers.find(name); found != scope->registers.end())
        return found->second;
      if (const auto series = scope->series.find(stem);
          series != scope->series.end() && stem.size() < name.size())
        return scope->registers[name] = add_register(series->second);
    }
    return none;
  }
  uint32_t register_named(std::string_view name) {
    const uint32_t found = find_register(name);
    if (found == none) throw Unsupported{std::string(name)};
    return found;
  }

  Symbol shared_symbol(std::string_view name, const Module::Shared& variable) {
    if (variable.dynamic) return scopes_.front().symbols[name] = {Special::constant, 0, true, true};
    std::size_t& end = program_.static_shared;
    const std::size_t begin = (end + variable.alignment - 1) / variable.alignment * variable.alignment;
    end = begin + variable.bytes;
    return scopes_.front().symbols[name] = {Special::constant, begin, true};
  }
  Symbol symbol(std::string_view name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->symbols.find(name); found != scope->symbols.end()) return found->second;
    if (const Module::Shared* const shared = module_.shared(name)) return shared_symbol(name, *shared);
    if (const std::byte* const variable = module_.variable(name))
      return {Special::constant, reinterpret_cast<uint64_t>(variable)};
    throw Unsupported{std::string(name)};
  }
  uint32_t value_of(const Symbol& what, unsigned bytes, uint64_t offset) {
    const std::size_t before = program_.fixed.size();
    // A dynamic array begins where the others end, which is known later: it gets a constant of its own.
    if (what.dynamic) {
      dynamic_.push_back(before);
      registers_.push_back({static_cast<uint8_t>(bytes), true});
      program_.fixed.push_back(
          {static_cast<uint32_t>(registers_.size() - 1), bytes, Special::constant, offset});
      return program_.fixed.back().slot;
    }
    return fixed(bytes, what.where, what.value + offset);
  }

  // Operands.

  static uint64_t immediate(std::string_view text) {
    const bool real =
        text.size() > 2 && text[0] == '0' && std::string_view("fFdD").find(text[1]) != std::string_view::npos;
    if (real) return std::strtoull(std::string(text.substr(2)).c_str(), nullptr, 16);
    return std::strtoull(std::string(text).c_str(), nullptr, 0);
  }

  struct Named {
    std::string_view name;
    int64_t offset;
  };
  static Named name_and_offset(std::string_view text) {
    Named result{trimmed(text.substr(0, text.find('+'))), 0};
    for (std::size_t plus = text.find('+'); plus != std::string_view::npos; plus = text.find('+', plus + 1))
      result.offset += std::strtoll(std::string(text.substr(plus + 1)).c_str(), nullptr, 0);
    return result;
  }

  uint32_t source(std::string_view text, unsigned bytes) {
    uint32_t result = none;
    if (is_digit(text[0]) || text[0] == '-') return constant(bytes, immediate(text));
    if (const auto special = specials().find(text); special != specials().end()) {
      result = fixed(special->second.second, special->second.first, 0);
    } else {
      result = find_register(text);
      if (result == none) {
        const Named named = name_and_offset(text);
        return value_of(symbol(named.name), bytes, static_cast<uint64_t>(named.offset));
      }
    }
    if (registers_[result].bytes != bytes) throw Unsupported{std::string(text) + " of another size"};
    return result;
  }
  uint32_t result(std::string_view text, unsigned bytes) {
    if (text == "_") return sink(bytes);
    const uint32_t found = register_named(text);
    if (registers_[found].bytes != bytes) throw Unsupported{std::string(text) + " of another size"};
    return found;
  }
  /// A predicate that "!" may stand before: `flip` has all bits then.
  uint32_t predicate(std::string_view text, int64_t& flip) {
    flip = text.starts_with('!') ? -1 : 0;
    return source(flip != 0 ? trimmed(text.substr(1)) : text, 0);
  }

  uint32_t address(std::string_view text, Instruction& in) {
    if (!text.starts_with('[')) throw Unsupported{std::string(text)};
    const Named named = name_and_offset(text.substr(1, text.size() - 2));
    in.number = named.offset;
    if (const uint32_t found = find_register(named.name); found != none) {
      in.wide_address = registers_[found].bytes == 8;
      return found;
    }
    const Symbol what = symbol(named.name);
    if (what.where == Special::frame) {
      in.space = Space::local;
      in.kind = in.kind == Kind::parameter ? Kind::parameter : Kind::local;
    }
    return value_of(what, 8, 0);
  }

  // Instructions.

  Instruction& add(const Statement& from, Instruction in, const Choice& choice) {
    if (choice.run == nullptr) throw Unsupported{""};
    in.run = choice.run;
    in.used = choice.operands;
    in.written = std::min(choice.written, choice.operands);
    if (!from.guard.empty()) {
      in.guard_flip = from.guard.starts_with('!') ? all_lanes : 0;
      in.guard = register_named(trimmed(from.guard.substr(in.guard_flip != 0 ? 1 : 0)));
    }
    in.line = static_cast<uint32_t>(program_.lines.size());
    program_.lines.push_back(from.text);
    program_.code.push_back(in);
    return program_.code.back();
  }

  void fill(Instruction& in, const Choice& choice, const std::vector<std::string_view>& operands) {
    if (operands.size() != choice.operands) throw Unsupported{"operands"};
    for (unsigned k = 0; k < choice.operands; ++k)
      in.slot[k] =
          k < choice.written ? result(operands[k], choice.bytes[k]) : source(operands[k], choice.bytes[k]);
  }
  void plain(const Statement& from, Instruction in, const Choice& choice) {
    if (choice.run == nullptr) throw Unsupported{""};
    fill(in, choice, from.operands);
    add(from, in, choice);
  }

  unsigned register_bytes(std::string_view text, unsigned otherwise) {
    const auto special = specials().find(text);
    if (special != specials().end()) return special->second.second;
    const uint32_t found = find_register(text);
    return found == none ? otherwise : registers_[found].bytes;
  }

  /// Whether an address is that of a variable that all threads share.
  bool is_named(std::string_view address) {
    const std::string_view name = name_and_offset(address.substr(1, address.size() - 2)).name;
    return find_register(name) == none && symbol(name).where != Special::frame;
  }
  void access(const Statement& from, const Opcode& op) {
    const bool loads = op.base() != "st";
    std::string_view moved = from.operands.at(loads ? 0 : 1), place = from.operands.at(loads ? 1 : 0);
    std::vector<std::string_view> registers =
        moved.starts_with('{') ? in_brackets(moved) : std::vector{moved};
    unsigned bytes = std::max(2u, size_of(op.type()));
    for (const std::string_view name : registers)
      if (name != "_") bytes = register_bytes(name, bytes);
    Instruction in;
    const Choice choice = access_choice(op, in, bytes, is_named(place));
    if (choice.run == nullptr || registers.size() != in.count) throw Unsupported{""};
    for (unsigned k = 0; k < in.count; ++k)
      in.slot[k] = loads ? result(registers[k], bytes) : source(registers[k], bytes);
    in.slot[in.count] = address(place, in);
    note_shared(in);
    add(from, in, choice);
  }
  void note_shared(const Instruction& in) {
    if (in.space == Space::shared || in.space == Space::generic)
      program_.shared_grain = std::min<std::size_t>(program_.shared_grain, in.element);
  }
  void atomic(const Statement& from, const Opcode& op) {
    Instruction in;
    const Choice choice = atomic_choice(op, in);
    const unsigned given = op.base() == "red" ? 1 : 0;
    if (choice.run == nullptr || from.operands.size() + given != choice.operands) throw Unsupported{""};
    in.slot[0] = given == 1 ? sink(choice.bytes[0]) : result(from.operands[0], choice.bytes[0]);
    in.slot[1] = address(from.operands[1 - given], in);
    for (unsigned k = 2; k < choice.operands; ++k)
      in.slot[k] = source(from.operands[k - given], choice.bytes[k]);
    note_shared(in);
    add(from, in, choice);
  }

  void move(const Statement& from, const Opcode& op) {
    const bool unpacks = from.operands.at(0).starts_with('{'), packs = from.operands.at(1).starts_with('{');
    if (!unpacks && !packs) {
      Instruction in;
      plain(from, in, integer_choice(op, in));
      return;
    }
    std::vector<std::string_view> all = in_brackets(from.operands[unpacks ? 0 : 1]);
    Instruction in;
    const Choice choice = packing_choice(size_of(op.type()), static_cast<unsigned>(all.size()), unpacks, in);
    all.insert(unpacks ? all.end() : all.begin(), from.operands[unpacks ? 1 : 0]);
    Statement as_one = from;
    as_one.operands = all;
    plain(as_one, in, choice);
  }
  /// Generic addresses are those of the host; only shared memory has others of its own.
  void convert_address(const Statement& from, const Opcode& op) {
    Instruction in;
    if (!op.has("shared")) return plain(from, in, integer_choice(op, in));
    const Choice choice = integer_choice(opcode_of(op.has("to") ? "sub.u64" : "add.u64"), in);
    in.slot = {result(from.operands.at(0), 8), source(from.operands.at(1), 8), fixed(8, Special::shared, 0)};
    add(from, in, choice);
  }

  void compare(const Statement& from, const Opcode& op) {
    Instruction in;
    const std::size_t bar = from.operands.at(0).find('|');
    const bool combines = from.operands.size() == 4 && op.base() == "setp";
    if (bar != std::string_view::npos || combines) in.mode = op.has("or") ? 'o' : op.has("xor") ? 'x' : 'a';
    const Choice choice = comparing_choice(op, in);
    if (in.mode == 0 || op.base() != "setp") return plain(from, in, choice);
    in.slot[0] = result(trimmed(from.operands[0].substr(0, bar)), 0);
    in.slot[1] =
        bar == std::string_view::npos ? sink(0) : result(trimmed(from.operands[0].substr(bar + 1)), 0);
    in.slot[2] = source(from.operands.at(1), choice.bytes[2]);
    in.slot[3] = source(from.operands.at(2), choice.bytes[3]);
    in.slot[4] = combines ? predicate(from.operands[3], in.number) : 0;
    add(from, in, choice);
  }

  void convert(const Statement& from, const Opcode& op) {
    Instruction in;
    const unsigned to = register_bytes(from.operands.at(0), 4);
    const unsigned of = register_bytes(from.operands.at(1), std::max(2u, size_of(op.type())));
    plain(from, in, conversion_choice(op, in, to, of));
  }

  void meet(const Statement& from, const Opcode& op, Instruction in, const Choice& choice) {
    const auto& given = from.operands;
    if (choice.run == &wait_at_barrier) {
      const bool reduces = given.size() == 3;
      in.slot[0] = reduces ? result(given[0], choice.bytes[0]) : sink(0);
      in.slot[1] = source(given[reduces ? 1 : 0], 4);
      in.slot[2] = reduces ? predicate(given[2], in.number) : 0;
    } else if (op.base() == "vote") {
      in.slot[0] = result(given.at(0), choice.bytes[0]);
      in.slot[1] = predicate(given.at(1), in.number);
      in.slot[2] = source(given.at(2), 4);
    } else if (op.base() == "shfl" || op.base() == "match") {
      const std::size_t bar = given.at(0).find('|');
      in.slot[0] = result(trimmed(given[0].substr(0, bar)), 4);
      in.slot[1] = bar == std::string_view::npos ? sink(0) : result(trimmed(given[0].substr(bar + 1)), 0);
      if (given.size() + 1 != choice.operands) throw Unsupported{"operands"};
      for (unsigned k = 2; k < choice.operands; ++k) in.slot[k] = source(given[k - 1], choice.bytes[k]);
    } else if (choice.operands > 0) {
      fill(in, choice, given);
    }
    add(from, in, choice);
  }

  void jump(const Statement& from, const Opcode& op, Instruction in, const Choice& choice) {
    Body& own = bodies_.back();
    if (op.base() == "brx") {
      in.slot[0] = source(from.operands.at(0), 4);
      add(from, in, choice).target = own.tables.at(from.operands.at(1));
      return;
    }
    add(from, in, choice);
    own.branches.emplace_back(program_.code.size() - 1, from.operands.at(0));
  }
  /// A call's body takes its place, and its end is what comes after it.
  void leave(const Statement& from, const Opcode& op, const Instruction& in, const Choice& choice) {
    if (op.base() == "exit" || bodies_.size() == 1) {
      add(from, in, choice);
      return;
    }
    Instruction jump = in;
    add(from, jump, meeting_choice(opcode_of("bra"), jump, 1));
    bodies_.back().branches.emplace_back(program_.code.size() - 1, "");
  }

  /// call (results), name, (arguments)
  void call(const Statement& from, const Opcode& op) {
    std::vector<std::string_view> results, arguments;
    std::string_view name;
    for (const std::string_view operand : from.operands) {
      if (!operand.starts_with('('))
        name = operand;
      else
        (name.empty() ? results : arguments) = in_brackets(operand);
    }
    if (!from.guard.empty()) throw Unsupported{"a guard"};
    const Item* const item = module_.function(name);
    if (name == "__assertfail") {
      Instruction in;
      const Choice choice = meeting_choice(op, in, arguments.size());
      for (unsigned k = 0; k < 3; ++k) in.slot[k] = value_of(symbol(arguments.at(k)), 8, 0);
      add(from, in, choice);
      return;
    }
    if (item == nullptr || item->body == std::string_view::npos || bodies_.size() > 30)
      throw Unsupported{std::string(name)};
    inline_function(*item, name, results, arguments);
  }
  void inline_function(const Item& item, std::string_view name, const std::vector<std::string_view>& results,
                       const std::vector<std::string_view>& arguments) {
    const std::string_view head = item.text.substr(0, item.body);
    const std::size_t at = head.find(name, head.find(".func"));
    Scope own;
    const auto bind = [&](std::string_view list, const std::vector<std::string_view>& given) {
      const std::size_t open = list.find('(');
      if (open == std::string_view::npos) return;
      const std::vector<std::string_view> names = parts_of(list.substr(open + 1, list.rfind(')') - open - 1));
      if (names.size() != given.size()) throw Unsupported{"arguments of " + std::string(name)};
      for (std::size_t i = 0; i < names.size(); ++i)
        own.symbols[declaration(names[i]).name] = symbol(given[i]);
    };
    bind(head.substr(0, at), results);
    bind(head.substr(at), arguments);
    // Inside, the caller's names mean nothing; those of the kernel's first scope are the module's.
    std::vector<Scope> outside;
    std::swap(outside, scopes_);
    scopes_.push_back(outside.front());
    scopes_.push_back(std::move(own));
    body(item, false);
    outside.front().symbols.insert(scopes_.front().symbols.begin(), scopes_.front().symbols.end());
    std::swap(outside, scopes_);
  }

  void instruction(const Statement& from) {
    const Opcode op = opcode_of(from.opcode);
    const std::string_view base = op.base();
    if (base == "ld" || base == "ldu" || base == "st") return access(from, op);
    if (base == "atom" || base == "red") return atomic(from, op);
    if (base == "mov") return move(from, op);
    if (base == "cvta") return convert_address(from, op);
    if (base == "cvt") return convert(from, op);
    if (base == "setp" || base == "set" || base == "testp") return compare(from, op);
    if (base == "call") return call(from, op);
    Instruction in;
    if (const Choice choice = meeting_choice(op, in, from.operands.size()); choice.run != nullptr) {
      if (base == "bra" || base == "brx") return jump(from, op, in, choice);
      if (base == "ret" || base == "exit") return leave(from, op, in, choice);
      return meet(from, op, in, choice);
    }
    in = {};
    const Choice real = real_choice(op, in);
    if (real.run != nullptr) return plain(from, in, real);
    in = {};
    plain(from, in, integer_choice(op, in));
  }

  // Bodies.

  void declare(std::string_view text) {
    const Declaration one = declaration(text);
    if (text.starts_with(".shared")) {
      scopes_.back().symbols[one.name] = shared_symbol(one.name, {one.bytes(), one.alignment, one.open});
      return;
    }
    std::size_t& end = program_.frame_bytes;
    end = (end + one.alignment - 1) / one.alignment * one.alignment;
    scopes_.back().symbols[one.name] = {Special::frame, end};
    end += std::max<std::size_t>(one.bytes(), 8);
  }
  void directive(std::string_view text) {
    if (text.starts_with(".reg")) return declare_registers(trimmed(text.substr(4)));
    if (text.starts_with(".local") || text.starts_with(".param") || text.starts_with(".shared"))
      return declare(text);
    if (!text.starts_with(".pragma"))
      throw Unsupported{std::string(text.substr(0, text.find_first_of(" \t")))};
  }
  void label(std::string_view name, std::string_view& rest) {
    Body& own = bodies_.back();
    if (!rest.starts_with(".branchtargets")) {
      own.labels[name] = static_cast<uint32_t>(program_.code.size());
      return;
    }
    const std::size_t end = rest.find(';');
    own.tables[name] = static_cast<uint32_t>(program_.tables.size());
    own.listed.emplace_back(own.tables[name], parts_of(rest.substr(14, end - 14)));
    program_.tables.emplace_back();
    rest.remove_prefix(end + 1);
  }

  void statements(std::string_view rest) {
    while (!(rest = trimmed(rest)).empty()) {
      if (rest[0] == '{' || rest[0] == '}') {
        if (rest[0] == '{')
          scopes_.emplace_back();
        else
          scopes_.pop_back();
        rest.remove_prefix(1);
        continue;
      }
      if (rest.starts_with(".loc ") || rest.starts_with(".loc\t")) {
        rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
        continue;
      }
      const auto end =
          static_cast<std::size_t>(std::find_if_not(rest.begin(), rest.end(), is_name) - rest.begin());
      if (end > 0 && end < rest.size() && rest[end] == ':') {
        const std::string_view name = rest.substr(0, end);
        rest = trimmed(rest.substr(end + 1));
        label(name, rest);
        continue;
      }
      const std::size_t semicolon = std::min(rest.find(';'), rest.size());
      statement(mutation_.of(trimmed(rest.substr(0, semicolon))));
      rest.remove_prefix(std::min(semicolon + 1, rest.size()));
    }
  }
  void statement(std::string_view text) {
    if (text.empty()) return;
    try {
      if (text[0] == '.')
        directive(text);
      else
        instruction(statement_of(text));
    } catch (const Unsupported& why) {
      if (why.what.starts_with(refusal)) throw;
      throw Unsupported{refusal + std::string(text) + (why.what.empty() ? "" : " (" + why.what + ")")};
    } catch (const std::out_of_range&) {
      throw Unsupported{refusal + std::string(text) + " (operands)"};
    }
  }

  void body(const Item& item, bool is_kernel) {
    bodies_.emplace_back();
    scopes_.emplace_back();
    const std::string_view text = item.text.substr(item.body + 1);
    statements(text.ends_with('}') ? text.substr(0, text.size() - 1) : text);
    if (is_kernel) instruction(statement_of("exit"));
    scopes_.pop_back();
    Body own = std::move(bodies_.back());
    bodies_.pop_back();
    const auto place = [&](std::string_view name) {
      if (name.empty()) return static_cast<uint32_t>(program_.code.size());
      const auto found = own.labels.find(name);
      if (found == own.labels.end()) throw Unsupported{refusal + "no label " + std::string(name)};
      return found->second;
    };
    for (const auto& [index, name] : own.branches) program_.code[index].target = place(name);
    for (const auto& [table, names] : own.listed)
      for (const std::string_view name : names) program_.tables[table].push_back(place(name));
  }

  void kernel_parameters(std::string_view head) {
    const std::size_t open = head.find('('), close = head.find(')');
    if (open == std::string_view::npos) return;
    std::size_t end = 0;
    for (const std::string_view text : parts_of(head.substr(open + 1, close - open - 1))) {
      const Declaration one = declaration(text);
      end = (end + one.alignment - 1) / one.alignment * one.alignment;
      program_.parameters.push_back({end, one.bytes()});
      scopes_.back().symbols[one.name] = {Special::parameters, end};
      end += one.bytes();
    }
    program_.parameter_bytes = end;
  }

  const Module& module_;
  Program& program_;
  Mutation mutation_;
  std::vector<Register> registers_;
  std::map<std::tuple<unsigned, Special, uint64_t>, uint32_t> fixed_;
  std::vector<std::size_t> dynamic_;  ///< of program_.fixed: places in dynamic shared memory
  std::vector<Scope> scopes_;
  std::vector<Body> bodies_;
};

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* const text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? text : symbol;
  std::free(text);
  return result;
}

}  // namespace

std::shared_ptr<const Program> parse(const Module& module, const std::string& symbol, const Item& item) {
  auto result = std::make_shared<Program>();
  result->symbol = symbol;
  result->name = demangled(symbol);
  try {
    Parser(module, *result).kernel(item);
  } catch (const Unsupported& why) {
    finding(result->name + ": " + why.what);
  }
  return result;
}

}  // namespace cuda_double::ptx
