// Errors of the library speak of functions and values; the program adds which flag helps.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// The text of an error with advice at its end, if there is any for it.
std::string with_advice(std::string_view error);

}  // namespace tandem
