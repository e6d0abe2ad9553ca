// Keys as terminals send them. The screen itself is tested with the program, in tests/apps.
#include "tandem/process/terminal_screen.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tandem {
namespace {

// Letters for keys; "." for a key that is not known.
std::string keys_of(std::string characters, bool is_complete = false) {
  std::string names;
  while (const auto event = take_key(characters, is_complete)) switch (event->key) {
      case Key::up:
        names += "U";
        break;
      case Key::down:
        names += "D";
        break;
      case Key::left:
        names += "L";
        break;
      case Key::right:
        names += "R";
        break;
      case Key::tab:
        names += "T";
        break;
      case Key::back_tab:
        names += "B";
        break;
      case Key::other:
        names += event->character == '\x1b' ? '.' : event->character;
        break;
      case Key::none:
        names += "!";
    }
  return names + (characters.empty() ? "" : " and more");
}

TEST(TakeKey, KnownKeys_AreFound) {
  EXPECT_EQ(keys_of("q+\x1b[A\x1b[B\x1b[C\x1b[D\x1bOA\t\x1b[Zl"), "q+UDRLUTBl");
}

TEST(TakeKey, UnknownKeys_AreSkippedWhole) {
  EXPECT_EQ(keys_of("\x1b[5~q"), ".q");    // page up
  EXPECT_EQ(keys_of("\x1b[1;5Cq"), ".q");  // ctrl-right
  EXPECT_EQ(keys_of("\x1b[200~q"), ".q");  // begin of pasted text
  EXPECT_EQ(keys_of("\x1bOPq"), ".q");     // F1
}

TEST(TakeKey, IncompleteSequence_WaitsForTheRest) {
  EXPECT_EQ(keys_of(""), "");
  EXPECT_EQ(keys_of("q\x1b"), "q and more");
  EXPECT_EQ(keys_of("q\x1b["), "q and more");
  EXPECT_EQ(keys_of("q\x1b", true), "q.");
  EXPECT_EQ(keys_of("q\x1b[", true), "q.");
}

}  // namespace
}  // namespace tandem
