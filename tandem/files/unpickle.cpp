// One loop over the opcodes with a stack of values and a stack of marks, without recursion. Every opcode
// makes at most one value and moves only what it pops, so time and memory are linear.
#include "tandem/files/unpickle.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/files/pickle_cursor.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr std::size_t max_values = 4'000'000, max_names = 100'000, max_name_bytes = 512;

using Kind = PickleKind;
using Id = std::uint32_t;

// The values made so far and the two stacks of the pickle machine.
class PickleStack {
 protected:
  PickleStack(std::string_view bytes, const std::string& name) : in_(bytes, name), name_(name) {}

  Id add(PickleValue value) {
    check(result_.values.size() < max_values, "[pickle] {}: more than {} values", name_, max_values);
    result_.values.push_back(std::move(value));
    return static_cast<Id>(result_.values.size() - 1);
  }
  void push(PickleValue value) { stack_.push_back(add(std::move(value))); }
  void push_integer(std::int64_t value) { push({.kind = Kind::integer, .integer = value}); }
  void push_text(Kind kind, std::string_view text) { push({.kind = kind, .text = text}); }
  void push_owned(Kind kind, std::string text) {
    result_.texts.push_back(std::move(text));
    push_text(kind, result_.texts.back());
  }

  // Nothing below the last mark can be popped.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Id pop() {
    in_.require(stack_.size() > floor());
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }
  Id top() const {
    in_.require(stack_.size() > floor());
    return stack_.back();
  }
  std::vector<Id> pop_to_mark() {
    in_.require(!marks_.empty());
    std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  void push_items(Kind kind, std::vector<Id> items) { push({.kind = kind, .items = std::move(items)}); }
  PickleValue& value(Id id) { return result_.values[id]; }

  PickleCursor in_;
  const std::string& name_;
  Pickle result_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // stack sizes
};

class Unpickler : private PickleStack {
 public:
  Unpickler(std::string_view bytes, const std::string& name) : PickleStack(bytes, name) {}

  Pickle run() {
    while (true) {
      const Opcode opcode = in_.read_opcode();
      if (opcode == Opcode::STOP) break;
      if (!run_number(opcode) && !run_text(opcode) && !run_container(opcode) && !run_memo(opcode))
        run_call(opcode);
    }
    in_.require(stack_.size() == 1 && marks_.empty());
    result_.root = stack_.back();
    return take();
  }

  // Also after an error.
  Pickle take() {
    result_.size = in_.position();
    return std::move(result_);
  }

 private:
  // An integer of any length, little-endian, two's complement.
  void push_long(std::string_view raw) {
    if (raw.size() > 8) return push_text(Kind::big_integer, raw);
    std::uint64_t bits = !raw.empty() && (raw.back() & 0x80) != 0 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = raw.size(); i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(raw[i]);
    push_integer(static_cast<std::int64_t>(bits));
  }

  void push_decimal(std::string_view text) {
    if (text == "00" || text == "01") return push({.kind = Kind::boolean, .integer = text == "01"});
    if (text.ends_with('L')) text.remove_suffix(1);
    if (text.size() > 18) return push_text(Kind::big_integer, text);
    push_integer(in_.parse<std::int64_t>(text));
  }

  bool run_number(Opcode opcode) {
    switch (opcode) {
      case Opcode::PROTO:
        in_.require(in_.read_uint(1) <= 5);
        return true;
      case Opcode::FRAME:  // only a hint for buffered readers
        in_.read_uint(8);
        return true;
      case Opcode::NONE:
        push({});
        return true;
      case Opcode::NEWTRUE:
      case Opcode::NEWFALSE:
        push({.kind = Kind::boolean, .integer = opcode == Opcode::NEWTRUE});
        return true;
      case Opcode::INT:
      case Opcode::LONG:
        push_decimal(in_.read_line());
        return true;
      case Opcode::BININT:
        push_integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(in_.read_uint(4))));
        return true;
      case Opcode::BININT1:
        push_integer(static_cast<std::int64_t>(in_.read_uint(1)));
        return true;
      case Opcode::BININT2:
        push_integer(static_cast<std::int64_t>(in_.read_uint(2)));
        return true;
      case Opcode::LONG1:
        push_long(in_.read_bytes(in_.read_uint(1)));
        return true;
      case Opcode::LONG4:
        push_long(in_.read_bytes(in_.read_uint(4)));
        return true;
      case Opcode::FLOAT:
        push({.kind = Kind::number, .number = in_.parse<double>(in_.read_line())});
        return true;
      case Opcode::BINFLOAT:
        push({.kind = Kind::number, .number = in_.read_big_endian_double()});
        return true;
      default:
        return false;
    }
  }

  bool run_text(Opcode opcode) {
    switch (opcode) {
      case Opcode::STRING:
        push_owned(Kind::text, in_.unquote(in_.read_line()));
        return true;
      case Opcode::UNICODE:
        push_owned(Kind::text, in_.unescape_unicode(in_.read_line()));
        return true;
      case Opcode::SHORT_BINSTRING:
      case Opcode::SHORT_BINUNICODE:
        push_text(Kind::text, in_.read_bytes(in_.read_uint(1)));
        return true;
      case Opcode::BINSTRING:
      case Opcode::BINUNICODE:
        push_text(Kind::text, in_.read_bytes(in_.read_uint(4)));
        return true;
      case Opcode::BINUNICODE8:
        push_text(Kind::text, in_.read_bytes(in_.read_uint(8)));
        return true;
      case Opcode::SHORT_BINBYTES:
        push_text(Kind::bytes, in_.read_bytes(in_.read_uint(1)));
        return true;
      case Opcode::BINBYTES:
        push_text(Kind::bytes, in_.read_bytes(in_.read_uint(4)));
        return true;
      case Opcode::BINBYTES8:
      case Opcode::BYTEARRAY8:
        push_text(Kind::bytes, in_.read_bytes(in_.read_uint(8)));
        return true;
      default:
        return false;
    }
  }

  bool run_container(Opcode opcode) {
    switch (opcode) {
      case Opcode::MARK:
        marks_.push_back(stack_.size());
        return true;
      case Opcode::POP:  // pops the mark when nothing lies above it
        if (!marks_.empty() && stack_.size() == marks_.back())
          marks_.pop_back();
        else
          pop();
        return true;
      case Opcode::POP_MARK:
        pop_to_mark();
        return true;
      case Opcode::DUP:
        stack_.push_back(top());
        return true;
      case Opcode::EMPTY_TUPLE:
        push_items(Kind::tuple, {});
        return true;
      case Opcode::EMPTY_LIST:
        push_items(Kind::list, {});
        return true;
      case Opcode::EMPTY_DICT:
        push_items(Kind::dict, {});
        return true;
      case Opcode::EMPTY_SET:
        push_items(Kind::set, {});
        return true;
      case Opcode::TUPLE:
        push_items(Kind::tuple, pop_to_mark());
        return true;
      case Opcode::LIST:
        push_items(Kind::list, pop_to_mark());
        return true;
      case Opcode::FROZENSET:
        push_items(Kind::set, pop_to_mark());
        return true;
      case Opcode::DICT: {
        std::vector<Id> items = pop_to_mark();
        in_.require(items.size() % 2 == 0);
        push_items(Kind::dict, std::move(items));
        return true;
      }
      case Opcode::TUPLE1:
      case Opcode::TUPLE2:
      case Opcode::TUPLE3: {
        std::vector<Id> items(1 + static_cast<std::size_t>(opcode) -
                              static_cast<std::size_t>(Opcode::TUPLE1));
        for (std::size_t i = items.size(); i-- > 0;) items[i] = pop();
        push_items(Kind::tuple, std::move(items));
        return true;
      }
      case Opcode::APPEND: {
        const Id item = pop();
        add_items(Kind::list, "append", {item});
        return true;
      }
      case Opcode::APPENDS:
        add_items(Kind::list, "extend", pop_to_mark());
        return true;
      case Opcode::ADDITEMS:
        add_items(Kind::set, "add", pop_to_mark());
        return true;
      case Opcode::SETITEM: {
        const Id item = pop(), key = pop();
        add_items(Kind::dict, "__setitem__", {key, item});
        return true;
      }
      case Opcode::SETITEMS:
        add_items(Kind::dict, "__setitem__", pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  // Adds to the container on top of the stack. If that is the result of a call, Python would call `method`.
  void add_items(Kind kind, const char* method, const std::vector<Id>& items) {
    PickleValue& target = value(top());
    in_.require(kind != Kind::dict || items.size() % 2 == 0);
    if (target.kind == Kind::call)
      mark_called(method_name(target, method));
    else
      in_.require(target.kind == kind);
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  bool run_memo(Opcode opcode) {
    switch (opcode) {
      case Opcode::PUT:
        memo_[in_.parse<std::uint64_t>(in_.read_line())] = top();
        return true;
      case Opcode::BINPUT:
        memo_[in_.read_uint(1)] = top();
        return true;
      case Opcode::LONG_BINPUT:
        memo_[in_.read_uint(4)] = top();
        return true;
      case Opcode::MEMOIZE: {
        const Id id = top();
        memo_[memo_.size()] = id;
        return true;
      }
      case Opcode::GET:
        push_memo(in_.parse<std::uint64_t>(in_.read_line()));
        return true;
      case Opcode::BINGET:
        push_memo(in_.read_uint(1));
        return true;
      case Opcode::LONG_BINGET:
        push_memo(in_.read_uint(4));
        return true;
      default:
        return false;
    }
  }
  void push_memo(std::uint64_t key) {
    const auto found = memo_.find(key);
    in_.require(found != memo_.end());
    stack_.push_back(found->second);
  }

  // Opcodes that make Python import, call or load something from outside the pickle.
  void run_call(Opcode opcode) {
    switch (opcode) {
      case Opcode::GLOBAL: {
        const std::string_view module = in_.read_line(), name = in_.read_line();
        return push_global(module, name);
      }
      case Opcode::STACK_GLOBAL: {
        const PickleValue &name = value(pop()), &module = value(pop());
        in_.require(name.kind == Kind::text && module.kind == Kind::text);
        return push_global(module.text, name.text);
      }
      case Opcode::PERSID:
        push_text(Kind::text, in_.read_line());
        [[fallthrough]];
      case Opcode::BINPERSID:
        return push_items(Kind::persistent, {pop()});
      case Opcode::REDUCE:
      case Opcode::NEWOBJ: {
        const Id arguments = pop(), callee = pop();
        return push_call(callee, arguments);
      }
      case Opcode::NEWOBJ_EX: {
        const Id keywords = pop(), arguments = pop(), callee = pop();
        in_.require(value(keywords).kind == Kind::dict);
        return push_call(callee, arguments);
      }
      case Opcode::INST: {
        const std::string_view module = in_.read_line(), name = in_.read_line();
        std::vector<Id> items = pop_to_mark();
        push_global(module, name);
        const Id callee = pop();
        return push_call(callee, add({.kind = Kind::tuple, .items = std::move(items)}));
      }
      case Opcode::OBJ: {
        std::vector<Id> items = pop_to_mark();
        in_.require(!items.empty());
        const Id callee = items.front();
        items.erase(items.begin());
        return push_call(callee, add({.kind = Kind::tuple, .items = std::move(items)}));
      }
      case Opcode::BUILD: {
        pop();  // the state
        const PickleValue& target = value(top());
        in_.require(target.kind == Kind::call || target.kind == Kind::global);
        return mark_called(method_name(target, "__setstate__"));
      }
      case Opcode::EXT1:
      case Opcode::EXT2:
      case Opcode::EXT4: {
        const std::size_t size = std::size_t{1}
                                 << (static_cast<int>(opcode) - static_cast<int>(Opcode::EXT1));
        push_global("copyreg", fmt::format("extension_{}", in_.read_uint(size)));
        return mark_called(std::string(result_.names[static_cast<std::size_t>(value(top()).integer)].name));
      }
      default:
        in_.refuse();
    }
  }

  std::uint32_t name_index(std::string name) {
    check(name.size() <= max_name_bytes, "[pickle] {}: a name of {} bytes, the limit is {}", name_,
          name.size(), max_name_bytes);
    const auto [found, added] =
        name_indices_.try_emplace(name, static_cast<std::uint32_t>(name_indices_.size()));
    if (added) {
      check(name_indices_.size() <= max_names, "[pickle] {}: more than {} names", name_, max_names);
      result_.names.push_back({std::move(name)});
    }
    return found->second;
  }
  void mark_called(std::string name) { result_.names[name_index(std::move(name))].called = true; }

  void push_global(std::string_view module, std::string_view name) {
    in_.require(module.size() <= max_name_bytes && name.size() <= max_name_bytes);
    push({.kind = Kind::global, .integer = name_index(one_line(fmt::format("{}.{}", module, name)))});
  }
  std::string method_name(const PickleValue& target, const char* method) const {
    return fmt::format("{}.{}", result_.name_of(target), method);
  }

  void push_call(Id callee, Id arguments) {
    in_.require(value(arguments).kind == Kind::tuple);
    const PickleValue& target = value(callee);
    in_.require(target.kind == Kind::global || target.kind == Kind::call || target.kind == Kind::persistent);
    if (target.kind == Kind::global)
      result_.names[static_cast<std::size_t>(target.integer)].called = true;
    else
      mark_called(fmt::format("the result of {}",
                              target.kind == Kind::call ? result_.name_of(target) : "a persistent id"));
    push({.kind = Kind::call, .callee = callee, .arguments = arguments});
  }

  // Not hashed: the file chooses the keys, and could choose ones that collide.
  std::map<std::uint64_t, Id> memo_;
  std::map<std::string, std::uint32_t> name_indices_;
};

}  // namespace

std::string_view Pickle::name_of(const PickleValue& value) const {
  const PickleValue& named = value.kind == Kind::call ? at(value.callee) : value;
  if (named.kind == Kind::global) return names[static_cast<std::size_t>(named.integer)].name;
  return named.kind == Kind::call ? "a result" : "";
}

Pickle parse_pickle(std::string_view bytes, const std::string& name) {
  return Unpickler(bytes, name).run();
}

PartialPickle parse_pickle_partly(std::string_view bytes, const std::string& name) {
  Unpickler unpickler(bytes, name);
  try {
    return {unpickler.run(), {}};
  } catch (const Error& error) {
    return {unpickler.take(), error.what()};
  }
}

}  // namespace tandem
