// The commands and flags of the program as plain rows, read from the parser. Help texts, the man page, shell
// completion and the reference pages are all made from them, so that a flag is described once.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace tandem {

// Flags of this group are shown by --help-all, not by --help. A flag of the group "" is in no help text.
inline constexpr const char* rare_group = "Rare";

struct FlagRow {
  std::string name;                  // "--batch-size", or "DATA" for a positional argument
  std::string short_name;            // "-b", or empty
  std::vector<std::string> aliases;  // "--bs"
  std::string value;                 // "N"; empty for a switch
  std::string help;
  std::string default_value;
  bool positional = false, required = false, repeated = false;
  bool rare = false;
};

struct CommandRow {
  std::string name;        // "train"; empty for the program itself
  std::string summary;     // "Train an image classifier"
  std::string notes;       // paragraphs and examples, shown below the flags
  std::string rare_notes;  // shown by --help-all only, above the others
  std::vector<FlagRow> flags;
};

// A footer is RARE_NOTES '\f' NOTES, or NOTES alone.
CommandRow command_row(const CLI::App& command);
// The commands that are not hidden, in their order.
std::vector<CommandRow> command_rows(const CLI::App& app);

// "tandem predict MODEL PATH... [FLAGS]"
std::string synopsis(const CommandRow& row);

// What is known about a flag's values, for completion: names, or that it is a file.
struct FlagValues {
  std::vector<std::string> names;
  bool files = false;
};
FlagValues flag_values(const CommandRow& command, const FlagRow& flag);

}  // namespace tandem
