// Plugins written in Python.
#include <gtest/gtest.h>

#include "tests/core/error_text.h"
#include "tests/study/plugin_trial.h"

namespace tandem {
namespace {

class PythonPlugin : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  }

  static PluginFile python(const std::string& text) {
    static int count = 0;
    return compile(text, "plugin" + std::to_string(++count) + ".py");
  }
};

TEST_F(PythonPlugin, FilledOutput_AndReturnedArray_AreTheSame) {
  const PluginFile fills = python("def twice(x, out):\n    out[...] = 2 * x\n");
  const PluginFile returns = python("def twice(x):\n    return 2 * x\n");
  EXPECT_EQ(PluginTrial(fills, "twice").result(), doubled);
  EXPECT_EQ(PluginTrial(returns, "twice").result(), doubled);
  EXPECT_EQ(PluginTrial(fills, "twice", with_huge_pages()).result(), doubled);
}

TEST_F(PythonPlugin, ThreadsAndPrepare_AreUsed) {
  const PluginFile file = python(
      "def prepare(array):\n    return [array]\n"
      "def twice(x, out, threads):\n    out[0][...] = threads * x[0]\n");
  EXPECT_EQ(PluginTrial(file, "twice").result(2), doubled);
}

TEST_F(PythonPlugin, Exception_IsNamed) {
  const PluginFile file = python("def twice(x, out):\n    raise ValueError('wrong shape')\n");
  EXPECT_EQ(error_text([&] { PluginTrial(file, "twice").result(); }),
            "ended with status 1: ValueError: wrong shape");
}

TEST_F(PythonPlugin, MissingModule_AndMissingFunction_AreNamed) {
  const PluginFile module = python("import no_such_module\n");
  EXPECT_EQ(error_text([&] { PluginTrial(module, "twice"); }),
            "ended with status 1: ModuleNotFoundError: No module named 'no_such_module'");
  const PluginFile empty = python("");
  EXPECT_THROW(PluginTrial(empty, "twice"), UnsupportedCase);
}

TEST_F(PythonPlugin, NotImplemented_IsUnsupportedCase) {
  const PluginFile file = python("def twice(x, out):\n    return NotImplemented\n");
  EXPECT_THROW(PluginTrial(file, "twice").result(), UnsupportedCase);
}

TEST_F(PythonPlugin, Input_CannotBeWritten) {
  const PluginFile file = python("def twice(x, out):\n    x[0, 0] = 1\n");
  EXPECT_EQ(error_text([&] { PluginTrial(file, "twice").result(); }),
            "ended with status 1: ValueError: assignment destination is read-only");
  EXPECT_EQ(error_text([&] { PluginTrial(file, "twice", with_huge_pages()).result(); }),
            "ended with status 1: ValueError: assignment destination is read-only");
}

}  // namespace
}  // namespace tandem
