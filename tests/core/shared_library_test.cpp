#include "tandem/core/shared_library.h"

#include <gtest/gtest.h>

#include "tests/core/error_text.h"
#include "tests/paths.h"

namespace tandem {
namespace {

TEST(SharedLibrary, Function_IsFoundInFirstFileThatExists) {
  SharedLibrary library({.name = "libm", .files = {"libnowhere.so.1", "libm.so.6"}, .folders = {}});
  EXPECT_TRUE(library.is_installed());
  const auto cosine = library.function<double (*)(double)>("cos");
  EXPECT_EQ(cosine(0.0), 1.0);
}

TEST(SharedLibrary, Missing_IsNamed) {
  SharedLibrary library({.name = "Nowhere 1", .files = {"libnowhere.so.1", "libnowhere.so"}, .folders = {}});
  EXPECT_FALSE(library.is_installed());
  EXPECT_EQ(error_text([&] { library.function<void (*)()>("f"); }),
            "Nowhere 1 is not installed (libnowhere.so.1 or libnowhere.so)");
}

TEST(SharedLibrary, PartOfInstalledName_IsMissing) {
  for (const char* file : {"m.so.6", "libm.so.", "libm.so.6.1"})
    EXPECT_FALSE(SharedLibrary({.name = "part", .files = {file}, .folders = {}}).is_installed()) << file;
}

TEST(SharedLibrary, MissingFunction_IsNamed) {
  SharedLibrary library({.name = "libm", .files = {"libm.so.6"}, .folders = {}});
  EXPECT_EQ(error_text([&] { library.function<void (*)()>("tandem_no_such_function"); }),
            "libm has no function tandem_no_such_function: expected another version");
}

TEST(SharedLibrary, Folder_IsSearched) {
  SharedLibrary library({.name = "Text",  // a file that exists and that is not a library
                         .files = {"README.md"},
                         .folders = {"/nowhere", source_folder}});
  EXPECT_TRUE(library.is_installed());
  EXPECT_EQ(error_text([&] { library.function<void (*)()>("f"); }).rfind("Text cannot be opened: ", 0), 0u);
}

}  // namespace
}  // namespace tandem
