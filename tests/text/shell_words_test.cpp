#include "tandem/text/shell_words.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(ShellWords, PlainWords_StayAsTheyAre) {
  EXPECT_EQ(shell_words({"train", "--lr=0.1", "/a/b_c", "+5", "784,10"}), "train --lr=0.1 /a/b_c +5 784,10");
}

TEST(ShellWords, OtherWords_AreQuoted) {
  EXPECT_EQ(shell_words({"", "a b", "$HOME", "it's", "\"x\"", "`id`", "a\nb", "*", "ü"}),
            "'' 'a b' '$HOME' 'it'\\''s' '\"x\"' '`id`' 'a\nb' '*' 'ü'");
}

}  // namespace
}  // namespace tandem
