#include "tandem/dist/nccl_library.h"

#include <gtest/gtest.h>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(NcclLibrary, Version_IsThatOfMajorTwo) {
  if (!missing_nccl().empty()) {
    EXPECT_EQ(error_text([] { nccl_library(); }), "NCCL 2 is not installed (libnccl.so.2)");
    return;
  }
  EXPECT_EQ(nccl_library().version().substr(0, 2), "2.");
}

TEST(NcclLibrary, Error_HasNcclsWords) {
  if (!missing_nccl().empty()) GTEST_SKIP() << missing_nccl();
  const std::string text = error_text([] { nccl_library().require(5, "ncclSend"); });
  EXPECT_EQ(text.find("[nccl] ncclSend failed: invalid usage"), 0u) << text;
}

}  // namespace
}  // namespace tandem
