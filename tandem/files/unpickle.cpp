// One loop over the opcodes, a stack of values and a stack of marks; nothing recurses. Every opcode makes at
// most one value and moves only what it takes off the stack.
#include "tandem/files/unpickle.h"

#include <bit>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "tandem/core/check.h"
#include "tandem/report/text.h"

namespace tandem {
namespace {

constexpr std::size_t longest_pickle = 64 << 20, most_values = 4'000'000, longest_name = 512;

using Kind = PickleKind;
using Id = std::uint32_t;

class Machine {
 public:
  Machine(std::string_view bytes, const std::string& name)
      : bytes_(bytes.substr(0, longest_pickle)), name_(name) {}

  Pickle run() {
    while (true) {
      opcode_at_ = at_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') break;
      if (!constant(opcode) && !container(opcode) && !memo(opcode)) call(opcode);
    }
    need(stack_.size() == 1 && marks_.empty());
    result_.root = stack_.back();
    result_.size = at_;
    return std::move(result_);
  }

 private:
  [[noreturn]] void damaged() const {
    fail("[pickle] {}: not a pickle, or damaged: opcode 0x{:02x} at byte {} does not fit", name_,
         static_cast<unsigned char>(bytes_[opcode_at_]), opcode_at_);
  }
  void need(bool fine) const {
    if (!fine) damaged();
  }

  std::string_view take(std::uint64_t size) {
    check(size <= bytes_.size() - at_, "[pickle] {}: the pickle is cut short, or longer than {} bytes", name_,
          longest_pickle);
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    check(end != std::string_view::npos, "[pickle] {}: the pickle is cut short", name_);
    const std::string_view text = take(end - at_);
    take(1);
    return text;
  }
  std::uint64_t number(std::size_t size) {
    const std::string_view raw = take(size);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
    return value;
  }
  template <class T>
  T decimal(std::string_view text) const {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    need(error == std::errc{} && end == text.data() + text.size());
    return value;
  }

  Id add(PickleValue value) {
    check(result_.values.size() < most_values, "[pickle] {}: more than {} values", name_, most_values);
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

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Id pop() {
    need(stack_.size() > floor());
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }
  Id top() const {
    need(stack_.size() > floor());
    return stack_.back();
  }
  std::vector<Id> pop_to_mark() {
    need(!marks_.empty());
    std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  void push_items(Kind kind, std::vector<Id> items) { push({.kind = kind, .items = std::move(items)}); }
  PickleValue& value(Id id) { return result_.values[id]; }

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
    push_integer(decimal<std::int64_t>(text));
  }

  int digit(std::string_view text, std::size_t at) const {
    need(at < text.size());
    const char c = text[at];
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    damaged();
  }

  // Protocol 0: repr() of a byte string, or raw-unicode-escape.
  std::string unescaped(std::string_view text, bool unicode) const {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        if (unicode)
          append_utf8(result, static_cast<unsigned char>(text[i]));
        else
          result += text[i];
        continue;
      }
      const char kind = i + 1 < text.size() ? text[i + 1] : '\0';
      const int digits = unicode ? (kind == 'u' ? 4 : kind == 'U' ? 8 : 0) : (kind == 'x' ? 2 : 0);
      if (digits == 0) {
        if (unicode) {
          result += '\\';
          continue;
        }
        constexpr std::string_view letters = "nrt\\'\"", meant = "\n\r\t\\'\"";
        const std::size_t known = letters.find(kind);
        need(known != std::string_view::npos);
        result += meant[known];
        ++i;
        continue;
      }
      std::uint32_t code = 0;
      for (int d = 0; d < digits; ++d) code = code << 4 | std::uint32_t(digit(text, i + 2 + std::size_t(d)));
      need(code <= 0x10FFFF);
      if (unicode)
        append_utf8(result, code);
      else
        result += static_cast<char>(code);
      i += 1 + std::size_t(digits);
    }
    return result;
  }

  bool constant(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        need(number(1) <= 5);
        return true;
      case 0x95:  // FRAME: only a hint for reading ahead
        number(8);
        return true;
      case 'N':
        push({});
        return true;
      case 0x88:
      case 0x89:
        push({.kind = Kind::boolean, .integer = opcode == 0x88});
        return true;
      case 'I':
      case 'L':
        push_decimal(line());
        return true;
      case 'J':
        push_integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(number(4))));
        return true;
      case 'K':
        push_integer(static_cast<std::int64_t>(number(1)));
        return true;
      case 'M':
        push_integer(static_cast<std::int64_t>(number(2)));
        return true;
      case 0x8a:
        push_long(take(number(1)));
        return true;
      case 0x8b:
        push_long(take(number(4)));
        return true;
      case 'F':
        push({.kind = Kind::number, .number = decimal<double>(line())});
        return true;
      case 'G': {
        std::uint64_t bits = 0;  // big-endian
        for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
        push({.kind = Kind::number, .number = std::bit_cast<double>(bits)});
        return true;
      }
      case 'S': {
        const std::string_view quoted = line();
        need(quoted.size() >= 2 && quoted.front() == quoted.back() &&
             (quoted.front() == '\'' || quoted.front() == '"'));
        push_owned(Kind::text, unescaped(quoted.substr(1, quoted.size() - 2), false));
        return true;
      }
      case 'V':
        push_owned(Kind::text, unescaped(line(), true));
        return true;
      case 'U':
      case 0x8c:
        push_text(Kind::text, take(number(1)));
        return true;
      case 'T':
      case 'X':
        push_text(Kind::text, take(number(4)));
        return true;
      case 0x8d:
        push_text(Kind::text, take(number(8)));
        return true;
      case 'C':
        push_text(Kind::bytes, take(number(1)));
        return true;
      case 'B':
        push_text(Kind::bytes, take(number(4)));
        return true;
      case 0x8e:
      case 0x96:
        push_text(Kind::bytes, take(number(8)));
        return true;
      default:
        return false;
    }
  }

  bool container(unsigned char opcode) {
    switch (opcode) {
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case '0':  // POP takes a mark where there is nothing else
        if (!marks_.empty() && stack_.size() == marks_.back())
          marks_.pop_back();
        else
          pop();
        return true;
      case '1':
        pop_to_mark();
        return true;
      case '2':
        stack_.push_back(top());
        return true;
      case ')':
        push_items(Kind::tuple, {});
        return true;
      case ']':
        push_items(Kind::list, {});
        return true;
      case '}':
        push_items(Kind::dict, {});
        return true;
      case 0x8f:
        push_items(Kind::set, {});
        return true;
      case 't':
        push_items(Kind::tuple, pop_to_mark());
        return true;
      case 'l':
        push_items(Kind::list, pop_to_mark());
        return true;
      case 0x91:
        push_items(Kind::set, pop_to_mark());
        return true;
      case 'd': {
        std::vector<Id> items = pop_to_mark();
        need(items.size() % 2 == 0);
        push_items(Kind::dict, std::move(items));
        return true;
      }
      case 0x85:
      case 0x86:
      case 0x87: {
        std::vector<Id> items(std::size_t{opcode} - 0x84);
        for (std::size_t i = items.size(); i-- > 0;) items[i] = pop();
        push_items(Kind::tuple, std::move(items));
        return true;
      }
      case 'a': {
        const Id item = pop();
        put_in(Kind::list, "append", {item});
        return true;
      }
      case 'e':
        put_in(Kind::list, "extend", pop_to_mark());
        return true;
      case 0x90:
        put_in(Kind::set, "add", pop_to_mark());
        return true;
      case 's': {
        const Id item = pop(), key = pop();
        put_in(Kind::dict, "__setitem__", {key, item});
        return true;
      }
      case 'u':
        put_in(Kind::dict, "__setitem__", pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  // Into the container on top of the stack, or into what a call would have made, by one of its methods.
  void put_in(Kind kind, const char* method, const std::vector<Id>& items) {
    PickleValue& target = value(top());
    need(kind != Kind::dict || items.size() % 2 == 0);
    if (target.kind == Kind::call)
      called(method_name(target, method));
    else
      need(target.kind == kind);
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  bool memo(unsigned char opcode) {
    switch (opcode) {
      case 'p':
        memo_[decimal<std::uint64_t>(line())] = top();
        return true;
      case 'q':
        memo_[number(1)] = top();
        return true;
      case 'r':
        memo_[number(4)] = top();
        return true;
      case 0x94: {
        const Id id = top();
        memo_[memo_.size()] = id;
        return true;
      }
      case 'g':
        get(decimal<std::uint64_t>(line()));
        return true;
      case 'h':
        get(number(1));
        return true;
      case 'j':
        get(number(4));
        return true;
      default:
        return false;
    }
  }
  void get(std::uint64_t key) {
    const auto found = memo_.find(key);
    need(found != memo_.end());
    stack_.push_back(found->second);
  }

  // What Python would have looked up, called or asked for elsewhere.
  void call(unsigned char opcode) {
    switch (opcode) {
      case 'c': {
        const std::string_view module = line(), name = line();
        return push_global(module, name);
      }
      case 0x93: {
        const PickleValue &name = value(pop()), &module = value(pop());
        need(name.kind == Kind::text && module.kind == Kind::text);
        return push_global(module.text, name.text);
      }
      case 'P':
        push_text(Kind::text, line());
        [[fallthrough]];
      case 'Q':
        return push_items(Kind::persistent, {pop()});
      case 'R':
      case 0x81: {
        const Id arguments = pop(), callee = pop();
        return push_call(callee, arguments);
      }
      case 0x92: {
        const Id keywords = pop(), arguments = pop(), callee = pop();
        need(value(keywords).kind == Kind::dict);
        return push_call(callee, arguments);
      }
      case 'i': {
        const std::string_view module = line(), name = line();
        std::vector<Id> items = pop_to_mark();
        push_global(module, name);
        const Id callee = pop();
        return push_call(callee, add({.kind = Kind::tuple, .items = std::move(items)}));
      }
      case 'o': {
        std::vector<Id> items = pop_to_mark();
        need(!items.empty());
        const Id callee = items.front();
        items.erase(items.begin());
        return push_call(callee, add({.kind = Kind::tuple, .items = std::move(items)}));
      }
      case 'b': {
        pop();  // the state
        const PickleValue& target = value(top());
        need(target.kind == Kind::call || target.kind == Kind::global);
        return called(method_name(target, "__setstate__"));
      }
      case 0x82:
      case 0x83:
      case 0x84: {
        push_global("copyreg", fmt::format("extension_{}", number(std::size_t{1} << (opcode - 0x82))));
        return called(std::string(result_.names[static_cast<std::size_t>(value(top()).integer)].name));
      }
      default:
        damaged();
    }
  }

  std::uint32_t name_number(std::string name) {
    check(name.size() <= longest_name, "[pickle] {}: a name of {} bytes, the limit is {}", name_, name.size(),
          longest_name);
    const auto [found, added] = numbers_.try_emplace(name, static_cast<std::uint32_t>(numbers_.size()));
    if (added) result_.names.push_back({std::move(name)});
    return found->second;
  }
  void called(std::string name) { result_.names[name_number(std::move(name))].called = true; }

  void push_global(std::string_view module, std::string_view name) {
    need(module.size() <= longest_name && name.size() <= longest_name);
    push({.kind = Kind::global, .integer = name_number(one_line(fmt::format("{}.{}", module, name)))});
  }
  std::string method_name(const PickleValue& target, const char* method) const {
    return fmt::format("{}.{}", result_.name_of(target), method);
  }

  void push_call(Id callee, Id arguments) {
    need(value(arguments).kind == Kind::tuple);
    const PickleValue& target = value(callee);
    need(target.kind == Kind::global || target.kind == Kind::call || target.kind == Kind::persistent);
    if (target.kind == Kind::global)
      result_.names[static_cast<std::size_t>(target.integer)].called = true;
    else
      called(fmt::format("the result of {}",
                         target.kind == Kind::call ? result_.name_of(target) : "a persistent id"));
    push({.kind = Kind::call, .callee = callee, .arguments = arguments});
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 0, opcode_at_ = 0;
  Pickle result_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Id> memo_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // of the names
};

}  // namespace

std::string_view Pickle::name_of(const PickleValue& value) const {
  const PickleValue& named = value.kind == Kind::call ? at(value.callee) : value;
  if (named.kind == Kind::global) return names[static_cast<std::size_t>(named.integer)].name;
  return named.kind == Kind::call ? "a result" : "";
}

Pickle parse_pickle(std::string_view bytes, const std::string& name) {
  return Machine(bytes, name).run();
}

}  // namespace tandem
