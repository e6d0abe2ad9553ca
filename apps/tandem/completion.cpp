#include "apps/tandem/completion.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "tandem/text/shell_words.h"

namespace tandem {
namespace {

std::vector<std::string> all_names(const FlagRow& flag) {
  std::vector<std::string> names{flag.name};
  if (!flag.short_name.empty()) names.push_back(flag.short_name);
  names.insert(names.end(), flag.aliases.begin(), flag.aliases.end());
  return names;
}

// The names of the flags; aliases are accepted but not offered.
std::vector<std::string> offered(const CommandRow& command) {
  std::vector<std::string> names;
  for (const FlagRow& flag : command.flags)
    if (!flag.positional) names.push_back(flag.name);
  return names;
}

// What the positional arguments of a command may be, together.
FlagValues positional_values(const CommandRow& command) {
  FlagValues all;
  for (const FlagRow& flag : command.flags) {
    if (!flag.positional) continue;
    const FlagValues values = flag_values(command, flag);
    all.names.insert(all.names.end(), values.names.begin(), values.names.end());
    all.files = all.files || values.files;
  }
  return all;
}

std::string bash_reply(const FlagValues& values) {
  std::string words = fmt::format("{}", fmt::join(values.names, " "));
  return fmt::format("COMPREPLY=($(compgen {}-W \"{}\" -- \"$word\"))", values.files ? "-f " : "", words);
}

// In zsh's specifications brackets and colons have a meaning.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const FlagValues& values) {
  if (values.names.empty()) return values.files ? "_files" : " ";
  if (!values.files) return fmt::format("({})", fmt::join(values.names, " "));
  return fmt::format("{{_alternative \"names:name:({})\" \"files:file:_files\"}}",
                     fmt::join(values.names, " "));
}

std::string zsh_flag(const CommandRow& command, const FlagRow& flag) {
  const FlagValues values = flag_values(command, flag);
  const std::string value = zsh_text(flag.value);
  if (flag.positional)
    return shell_quoted(fmt::format("{}{}:{}:{}", flag.repeated ? "*" : "",
                                    flag.required || flag.repeated ? "" : ":", zsh_text(flag.name),
                                    zsh_action(values)));
  const std::string tail =
      fmt::format("[{}]{}", zsh_text(flag.help),
                  flag.value.empty() ? "" : fmt::format(":{}:{}", value, zsh_action(values)));
  if (flag.short_name.empty()) return shell_quoted(flag.name + tail);
  return fmt::format("'({0} {1})'{{{0},{1}}}{2}", flag.short_name, flag.name, shell_quoted(tail));
}

}  // namespace

std::string bash_completion(const std::vector<CommandRow>& commands) {
  std::string names;
  for (const CommandRow& command : commands) names += (names.empty() ? "" : " ") + command.name;
  std::string text = fmt::format(
      "# bash completion for tandem, made by `tandem generate bash`\n"
      "_tandem() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n",
      names);
  for (const CommandRow& command : commands) {
    text += fmt::format("  {})\n    case $before in\n", command.name);
    for (const FlagRow& flag : command.flags)
      if (!flag.positional && !flag.value.empty())
        text += fmt::format("    {}) {}; return ;;\n", fmt::join(all_names(flag), "|"),
                            bash_reply(flag_values(command, flag)));
    text += "    esac\n";
    text += fmt::format(
        "    if [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n"
        "    else {}; fi ;;\n",
        fmt::join(offered(command), " "), bash_reply(positional_values(command)));
  }
  return text + "  esac\n}\ncomplete -o filenames -F _tandem tandem\n";
}

std::string zsh_completion(const std::vector<CommandRow>& commands) {
  std::string text =
      "#compdef tandem\n# zsh completion for tandem, made by `tandem generate zsh`\n\n"
      "_tandem() {\n  local -a commands\n  commands=(\n";
  for (const CommandRow& command : commands)
    text += fmt::format("    {}\n", shell_quoted(zsh_text(command.name) + ":" + zsh_text(command.summary)));
  text +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n";
  for (const CommandRow& command : commands) {
    text += fmt::format("  {})\n    _arguments \\\n", command.name);
    for (std::size_t i = 0; i < command.flags.size(); ++i)
      text += fmt::format("      {}{}\n", zsh_flag(command, command.flags[i]),
                          i + 1 < command.flags.size() ? " \\" : " ;;");
  }
  return text + "  esac\n}\n\n_tandem \"$@\"\n";
}

std::string fish_completion(const std::vector<CommandRow>& commands) {
  std::string text = "# fish completion for tandem, made by `tandem generate fish`\ncomplete -c tandem -f\n";
  for (const CommandRow& command : commands)
    text += fmt::format("complete -c tandem -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        shell_quoted(command.summary));
  for (const CommandRow& command : commands) {
    const std::string start =
        fmt::format("complete -c tandem -n '__fish_seen_subcommand_from {}'", command.name);
    for (const FlagRow& flag : command.flags) {
      const FlagValues values = flag_values(command, flag);
      std::string line = start;
      if (!flag.positional) {
        line += " -l " + flag.name.substr(2);
        if (!flag.short_name.empty()) line += " -s " + flag.short_name.substr(1);
        if (!flag.value.empty()) line += " -r";
        line += " -d " + shell_quoted(flag.help);
      }
      if (values.files) line += " -F";
      if (!values.names.empty()) line += fmt::format(" -a '{}'", fmt::join(values.names, " "));
      if (line != start) text += line + "\n";
    }
  }
  return text;
}

}  // namespace tandem
