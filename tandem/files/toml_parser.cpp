// The rules of tables: a document is read into a tree whose nodes know how they were defined, because that
// decides whether later lines may add to them.
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/files/toml.h"
#include "tandem/files/toml_cursor.h"
#include "tandem/files/toml_word.h"

namespace tandem {
namespace {

constexpr std::size_t max_depth = 100;  // so that no document exhausts the stack

struct Node {
  enum class Kind {
    value,          // complete, also if it is an inline table or a list
    implied_table,  // a of [a.b]: a header may still define it
    header_table,   // [a]
    dotted_table,   // a of a.b = 1: dotted keys of the same section add to it
    table_array,    // [[a]]: its children are the tables
  };

  Kind kind = Kind::implied_table;
  int line = 0;
  std::size_t depth = 0;  // of tables and lists around it
  std::string key = {};
  TomlValue value = {};
  std::vector<std::unique_ptr<Node>> children = {};
  std::map<std::string, Node*> index = {};  // of children with a key

  Node* find(const std::string& name) const {
    const auto found = index.find(name);
    return found == index.end() ? nullptr : found->second;
  }

  Node& add(Kind child_kind, int child_line, const std::string& name) {
    Node& child = add_element(child_line);
    child.kind = child_kind;
    child.key = name;
    index.emplace(name, &child);
    return child;
  }

  Node& add_element(int element_line) {
    children.push_back(
        std::make_unique<Node>(Node{.kind = Kind::header_table, .line = element_line, .depth = depth + 1}));
    return *children.back();
  }
};

TomlTable to_table(Node& node);

TomlValue to_value(Node& node) {
  if (node.kind == Node::Kind::value) return std::move(node.value);
  if (node.kind != Node::Kind::table_array) return to_table(node);
  TomlList list;
  for (const auto& element : node.children) list.emplace_back(to_table(*element));
  return list;
}

TomlTable to_table(Node& node) {
  TomlTable table;
  for (const auto& child : node.children)
    table.entries.push_back({std::move(child->key), to_value(*child), child->line});
  return table;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : cursor_(text, name) {}

  TomlTable parse() {
    while (true) {
      cursor_.skip_lines();
      if (cursor_.at_end()) return to_table(root_);
      if (cursor_.next() == '[') {
        take_header();
      } else {
        const std::string key = take_pair(*section_);
        cursor_.take_line_end("the value of '" + key + "'");
      }
    }
  }

 private:
  using Key = std::vector<std::string>;

  void require_depth(std::size_t depth) const {
    cursor_.require(depth <= max_depth, "expected at most {} levels of tables and lists", max_depth);
  }

  // [a.b] or [[a.b]]
  void take_header() {
    const bool is_array = cursor_.take("[[");
    if (!is_array) cursor_.take("[");
    const Key key = cursor_.take_key();
    require_depth(key.size());
    cursor_.require_next(cursor_.take(is_array ? "]]" : "]"), "expected {} after '{}'", is_array ? "]]" : "]",
                         detail::key_text(key));
    cursor_.take_line_end("a table's name");
    Node* parent = &root_;
    for (std::size_t i = 0; i + 1 < key.size(); ++i) parent = &enter(*parent, key, i);
    section_ = is_array ? &add_to_array(*parent, key) : &define(*parent, key);
    require_depth(section_->depth);
  }

  // A part of a header before the last one: any table, or the last table of an array.
  Node& enter(Node& parent, const Key& key, std::size_t i) {
    Node* const found = parent.find(key[i]);
    if (found == nullptr) return parent.add(Node::Kind::implied_table, cursor_.line(), key[i]);
    require_table(*found, key, i);
    return found->kind == Node::Kind::table_array ? *found->children.back() : *found;
  }

  Node& define(Node& parent, const Key& key) {
    Node* const found = parent.find(key.back());
    if (found == nullptr) return parent.add(Node::Kind::header_table, cursor_.line(), key.back());
    cursor_.require(found->kind == Node::Kind::implied_table,
                    "expected a new table, got '{}', which line {} defines", detail::key_text(key),
                    found->line);
    found->kind = Node::Kind::header_table;
    found->line = cursor_.line();
    return *found;
  }

  Node& add_to_array(Node& parent, const Key& key) {
    Node* found = parent.find(key.back());
    if (found == nullptr) found = &parent.add(Node::Kind::table_array, cursor_.line(), key.back());
    cursor_.require(found->kind == Node::Kind::table_array,
                    "expected a new array of tables, got '{}', which line {} defines", detail::key_text(key),
                    found->line);
    return found->add_element(cursor_.line());
  }

  void require_table(const Node& node, const Key& key, std::size_t i) const {
    cursor_.require(node.kind != Node::Kind::value,
                    "expected '{}' to be a table to which keys can be added, got the value in line {}",
                    detail::key_text(key, i + 1), node.line);
  }

  // a.b = value; returns the key's text.
  std::string take_pair(Node& table) {
    const int line = cursor_.line();
    const Key key = cursor_.take_key();
    require_depth(table.depth + key.size());
    std::string name = detail::key_text(key);
    Node* parent = &table;
    for (std::size_t i = 0; i + 1 < key.size(); ++i) parent = &enter_dotted(*parent, key, i);
    const Node* const found = parent->find(key.back());
    cursor_.require(found == nullptr, "expected a new key, got '{}', which line {} defines", name,
                    found ? found->line : 0);
    cursor_.require_next(cursor_.take("="), "expected = after '{}'", name);
    cursor_.skip_spaces();
    TomlValue value = take_value(parent->depth + 1);
    parent->add(Node::Kind::value, line, key.back()).value = std::move(value);
    return name;
  }

  // A part of a dotted key before the last one. Headers define tables completely.
  Node& enter_dotted(Node& parent, const Key& key, std::size_t i) {
    Node* const found = parent.find(key[i]);
    if (found == nullptr) return parent.add(Node::Kind::dotted_table, cursor_.line(), key[i]);
    require_table(*found, key, i);
    cursor_.require(found->kind == Node::Kind::implied_table || found->kind == Node::Kind::dotted_table,
                    "expected a new table, got '{}', which line {} defines", detail::key_text(key, i + 1),
                    found->line);
    found->kind = Node::Kind::dotted_table;
    return *found;
  }

  TomlValue take_value(std::size_t depth) {
    require_depth(depth);
    if (cursor_.take("[")) return take_list(depth);
    if (cursor_.take("{")) return take_inline_table(depth);
    if (cursor_.next() == '"' || cursor_.next() == '\'') return cursor_.take_string();
    const std::string_view word = cursor_.take_word();
    cursor_.require_next(!word.empty(), "expected a value");
    try {
      return detail::parse_toml_word(word);
    } catch (const Error& error) {
      cursor_.require(false, "{}", error.what());
      throw;
    }
  }

  TomlList take_list(std::size_t depth) {
    TomlList list;
    while (true) {
      cursor_.skip_lines();
      if (cursor_.take("]")) return list;
      cursor_.require(!cursor_.at_end(), "expected ] at the end of the list");
      list.push_back(take_value(depth + 1));
      cursor_.skip_lines();
      if (cursor_.take("]")) return list;
      cursor_.require_next(cursor_.take(","), "expected , or ] in the list");
    }
  }

  // On one line, unless a value inside has several.
  TomlTable take_inline_table(std::size_t depth) {
    Node table{.depth = depth};
    cursor_.skip_spaces();
    if (cursor_.take("}")) return {};
    while (true) {
      take_pair(table);
      cursor_.skip_spaces();
      if (cursor_.take("}")) return to_table(table);
      cursor_.require_next(cursor_.take(","), "expected , or }} in the table");
    }
  }

  detail::TomlCursor cursor_;
  Node root_{.kind = Node::Kind::header_table};
  Node* section_ = &root_;
};

}  // namespace

TomlTable parse_toml(std::string_view text, const std::string& name) {
  const std::string checked = detail::checked_toml_text(text, name);
  TomlTable table = Parser(checked, name).parse();
  table.name = name;
  return table;
}

}  // namespace tandem
