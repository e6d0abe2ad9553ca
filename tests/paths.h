// Where the sources and the program under test are. No flag of the tests has the name of a folder, so that a
// compiler cache finds what was compiled in another one.
#pragma once

namespace tandem {

extern const char* const source_folder;
extern const char* const program_file;

}  // namespace tandem
