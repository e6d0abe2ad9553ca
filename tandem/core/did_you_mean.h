// Suggestions for misspelled names, shared by registries, configuration keys and the program's flags.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tandem {

/// The number of characters to insert, delete, replace or exchange with their neighbor to make `b` of `a`;
/// case is ignored, and '_' equals '-'.
int edit_distance(std::string_view a, std::string_view b);

/// The name that is probably meant: the closest one if it differs in at most a third of its characters, or
/// one that begins with `given`; empty if there is none or if `given` is one of them.
std::string closest_name(std::string_view given, std::span<const std::string> names);

/// "; did you mean 'resnet18'?", to be put at the end of an error text, or an empty string.
std::string did_you_mean(std::string_view given, std::span<const std::string> names);

}  // namespace tandem
