#include "apps/tandem/help.h"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr int page_width = 80;
constexpr int left_width = 26;

// Lines in which "(default: 6)" is not broken.
std::vector<std::string> wrapped_help(std::string text) {
  constexpr std::string_view start = "(default: ", unbroken = "(default:\u00A0";
  if (const std::size_t at = text.find(start); at != std::string::npos)
    text.replace(at, start.size(), unbroken);
  std::vector<std::string> lines = wrap(text, page_width - left_width);
  for (std::string& line : lines)
    if (const std::size_t at = line.find(unbroken); at != std::string::npos)
      line.replace(at, unbroken.size(), start);
  return lines;
}

// Two columns; a long left part gets a line of its own.
void add_entry(std::string& page, const std::string& left, const std::string& right) {
  page += "  " + left;
  int column = display_width(left) + 2;
  if (column + 1 > left_width) {
    page += '\n';
    column = 0;
  }
  for (const std::string& line : wrapped_help(right)) {
    page += std::string(static_cast<std::size_t>(left_width - column), ' ') + line + '\n';
    column = 0;
  }
  if (right.empty()) page += '\n';
}

std::string flag_label(const FlagRow& flag, bool all) {
  std::string label = flag.positional           ? std::string()
                      : flag.short_name.empty() ? "    "
                                                : flag.short_name + ", ";
  label += flag.name;
  if (all)
    for (const std::string& alias : flag.aliases) label += ", " + alias;
  if (!flag.value.empty() && !flag.positional) label += " " + flag.value;
  return label;
}

// A line of a list, wrapped with a hanging indent if it is too long.
std::string fitted_line(std::string_view line) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  if (display_width(line) <= page_width || indent == 0) return std::string(line) + '\n';
  std::string page;
  for (const std::string& part : wrap(line.substr(indent), page_width - static_cast<int>(indent) - 4))
    page += std::string(page.empty() ? indent : indent + 4, ' ') + part + '\n';
  return page;
}

// Lines that belong together are joined and wrapped; examples and indented lines stay as they are.
bool is_verbatim(std::string_view line) {
  return line.empty() || line.starts_with(' ') || line.starts_with("Example");
}

// Whether a default says more than that something is chosen or off.
bool is_value(const std::string& text) {
  return text != "auto" && text != "none" && text != "0" && text != "0.0" && !text.starts_with("by ");
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    return app->get_parent() == nullptr ? program_help(*app)
                                        : help_text(command_row(*app), mode == CLI::AppFormatMode::All);
  }
};

}  // namespace

std::string help_with_default(const FlagRow& flag) {
  if (flag.default_value.empty()) return flag.help;
  return fmt::format("{} (default: {})", flag.help, flag.default_value);
}

std::string wrapped_notes(std::string_view notes) {
  std::string page, paragraph;
  const auto flush = [&] {
    if (!paragraph.empty())
      for (const std::string& line : wrap(paragraph, page_width)) page += line + '\n';
    paragraph.clear();
  };
  while (!notes.empty()) {
    const std::size_t end = std::min(notes.find('\n'), notes.size());
    const std::string_view line = notes.substr(0, end);
    notes.remove_prefix(std::min(end + 1, notes.size()));
    if (is_verbatim(line) || line.ends_with(':')) {
      flush();
      page += fitted_line(line);
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    }
  }
  flush();
  return page;
}

std::string help_text(const CommandRow& row, bool all) {
  std::string page = fmt::format("{}.\n\nUsage: {}\n\n", row.summary, synopsis(row));
  for (const FlagRow& flag : row.flags)
    if (flag.positional) add_entry(page, flag_label(flag, all), help_with_default(flag));
  page += "\nFlags:\n";
  bool rare = false;
  for (const FlagRow& flag : row.flags) {
    if (flag.positional || flag.name == "--help-all" || flag.name == "--help") continue;
    rare = rare || flag.rare;
    if (all || !flag.rare)
      add_entry(page, flag_label(flag, all),
                all || is_value(flag.default_value) ? help_with_default(flag) : flag.help);
  }
  add_entry(page, "-h, --help",
            all || !rare ? "Show the common flags" : "Show this help; --help-all: every flag");
  const std::string notes = wrapped_notes(all ? row.rare_notes + row.notes : row.notes);
  return notes.empty() ? page : page + "\n" + notes;
}

std::string program_help(const CLI::App& app) {
  std::string page = fmt::format("{}\n\nUsage: tandem COMMAND [FLAGS]\n\nCommands:\n", app.get_description());
  for (const CommandRow& command : command_rows(app)) add_entry(page, command.name, command.summary);
  page += "\nFlags:\n";
  for (const FlagRow& flag : command_row(app).flags)
    if (flag.name != "--help-all") add_entry(page, flag_label(flag, false), flag.help);
  return page + "\n" + wrapped_notes(app.get_footer());
}

void set_help(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Show this help");
  app.set_help_all_flag("--help-all", "Show every flag with its default");
}

}  // namespace tandem
