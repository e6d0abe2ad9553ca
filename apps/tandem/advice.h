// What the program adds to the library: which flag helps after an error, and which of two meanings it took.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// The text of an error with advice at its end, if there is any for it.
std::string with_advice(std::string_view error);

// Prints a line if `data` is a data set's name and a folder's as well: then the data set is used.
void tell_named_data(const std::string& data);

}  // namespace tandem
