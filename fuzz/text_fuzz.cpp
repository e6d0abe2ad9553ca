// Text for terminals and reports: whatever comes in, valid UTF-8 without control characters comes out, and
// what is escaped for CSV, HTML, TOML or a shell is the same text after it is read.
#include <cstring>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "tandem/files/toml.h"
#include "tandem/report/csv.h"
#include "tandem/report/html.h"
#include "tandem/text/format_number.h"
#include "tandem/text/shell_words.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

bool is_plain(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
  return is_utf8(text);
}

void check_lines(std::string_view text) {
  const std::string line = one_line(text);
  require(is_plain(line) && one_line(line) == line && display_width(line) >= 0);
  for (const int width : {1, 7, 40}) {
    require(display_width(shorten(line, width)) <= width);
    for (const std::string& part : wrap(line, width)) require(display_width(part) <= width);
  }
}

std::string without_entities(std::string_view html) {
  constexpr std::pair<std::string_view, char> entities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
  std::string text;
  while (!html.empty()) {
    require(std::string_view("<>\"'").find(html[0]) == std::string_view::npos);
    std::size_t taken = 1;
    char c = html[0];
    for (const auto& [entity, meaning] : entities)
      if (html.starts_with(entity)) {
        taken = entity.size();
        c = meaning;
      }
    require(html[0] != '&' || taken > 1);
    text += c;
    html.remove_prefix(taken);
  }
  return text;
}

// One word as a POSIX shell reads it, made of quoted parts and \'.
std::string shell_read(std::string_view word) {
  std::string text;
  bool quoted = false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\'')
      quoted = !quoted;
    else if (word[i] == '\\' && !quoted)
      text += word[++i];
    else
      text += word[i];
  }
  require(!quoted);
  return text;
}

void check_escapes(std::string_view text) {
  const std::string given(text);
  require(csv_fields(csv_field(text)) == std::vector<std::string>{given});
  require(csv_fields(csv_field(text) + "," + csv_field(text)) == std::vector<std::string>{given, given});
  require(without_entities(escape_html(text)) == one_line(text));
  require(shell_read(shell_words({given})) == given && shell_read(shell_quoted(text)) == given);
  if (!is_utf8(text)) return;
  const TomlTable table{.name = {}, .entries = {{given, given, 1}}};
  require(parse_toml(to_toml(table), "text") == table);
}

void check_numbers(const std::uint8_t* data) {
  double value = 0;
  std::memcpy(&value, data, sizeof value);
  for (const Unit unit : {Unit::none, Unit::milliseconds, Unit::ratio, Unit::share, Unit::count})
    require(is_plain(format_number(value, unit)) && is_plain(format_tick(value, unit)));
  std::int64_t count = 0;
  std::memcpy(&count, data, sizeof count);
  std::string digits = format_count(count);
  std::erase(digits, ',');
  require(digits == std::to_string(count));
  require(is_plain(format_duration(value)) && is_plain(format_ms_range(value, value + 1)));
  require(is_plain(format_decimals(value, 4)) && is_plain(format_rounded(value)));
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  check_lines(text_of(data, size));
  check_escapes(text_of(data, size));
  if (size >= 8) check_numbers(data);
  return 0;
}
