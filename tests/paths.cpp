#include "tests/paths.h"

namespace tandem {

const char* const source_folder = TANDEM_SOURCE_FOLDER;
const char* const program_file = TANDEM_PROGRAM_FILE;

}  // namespace tandem
