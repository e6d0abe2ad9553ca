// Holds the real tree to the rules of the house, and each rule to made-up trees: a rule that would let a
// breach pass fails here.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/architecture/rules.h"
#include "tests/architecture/source_tree.h"

namespace tandem::architecture {
namespace {

namespace fs = std::filesystem;

std::string listed(const Breaches& breaches) {
  std::string text;
  for (const auto& breach : breaches) text += breach + "\n";
  return text;
}

Sources real_tree() {
  return read_sources(TANDEM_SOURCE_DIR, {"tandem", "apps"});
}

TEST(House, HasSources) {
  EXPECT_GE(real_tree().size(), 4U);
}
TEST(House, EverySourceStandsInAKnownRoom) {
  EXPECT_EQ(listed(unknown_rooms(real_tree())), "");
}
TEST(House, RoomsIncludeOnlyThemselvesAndLowerRanks) {
  EXPECT_EQ(listed(rank_breaches(real_tree())), "");
}
TEST(House, FilesDoNotIncludeInCircles) {
  EXPECT_EQ(listed(include_cycles(real_tree())), "");
}
TEST(House, CudaHeadersStayInCudaSources) {
  EXPECT_EQ(listed(cuda_header_breaches(real_tree())), "");
}
TEST(House, DeviceAloneOwnsCudaResources) {
  EXPECT_EQ(listed(cuda_ownership_breaches(real_tree())), "");
}
TEST(House, EverySourceHasItsHeader) {
  EXPECT_EQ(listed(sources_without_header(real_tree())), "");
}
TEST(House, EveryHeaderIsIncludedOnce) {
  EXPECT_EQ(listed(headers_without_pragma_once(real_tree())), "");
}
TEST(House, NoMacros) {
  EXPECT_EQ(listed(macros(real_tree())), "");
}
TEST(House, NoFileIsTooLong) {
  const auto all = read_sources(TANDEM_SOURCE_DIR, {"tandem", "apps", "tests", "bench", "examples"});
  EXPECT_EQ(listed(long_files(all)), "");
}

// A tree in a folder of its own that goes away with the test.
class MadeUpTree : public ::testing::Test {
 protected:
  MadeUpTree() {
    std::string name = (fs::temp_directory_path() / "tandem-architecture-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + name);
    root_ = name;
  }
  ~MadeUpTree() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void write(const std::string& path, std::string_view text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }
  Sources tree() const { return read_sources(root_, {"tandem", "apps"}); }

 private:
  fs::path root_;
};

TEST_F(MadeUpTree, AllowsOwnRoomLowerRanksAndSystemHeaders) {
  write("tandem/core/shape.h", "#pragma once\n#include <vector>\n");
  write("tandem/ops/add.h", "#pragma once\n#include \"tandem/core/shape.h\"\n");
  write("tandem/ops/add.cpp", "#include \"tandem/ops/add.h\"\n#include <cblas.h>\n");
  write("tandem/ops/add.cu", "#include \"tandem/ops/add.h\"\n#include <cuda_runtime.h>\n");
  write("tandem/device/cuda_call.h", "#pragma once\n#include <cuda_runtime.h>\nvoid* p = cudaMalloc();\n");
  write("apps/tandem/main.cpp", "#include \"tandem/ops/add.h\"\n#include \"command.h\"\n");
  write("apps/tandem/command.h", "#pragma once\n");
  const auto files = tree();
  EXPECT_EQ(files.size(), 7U);
  for (const auto rule :
       {unknown_rooms, rank_breaches, include_cycles, cuda_header_breaches, cuda_ownership_breaches,
        sources_without_header, headers_without_pragma_once, long_files, macros})
    EXPECT_EQ(listed(rule(files)), "");
}

TEST_F(MadeUpTree, ReportsAnUnknownRoomAndAFileInNoRoom) {
  write("tandem/utils/misc.h", "#pragma once\n");
  write("tandem/loose.h", "#pragma once\n");
  EXPECT_EQ(listed(unknown_rooms(tree())),
            "tandem/loose.h: stands in no known room\ntandem/utils/misc.h: stands in no known room\n");
}

TEST_F(MadeUpTree, ReportsAnIncludeOfAHigherRank) {
  write("tandem/core/shape.h", "#pragma once\n\n#include \"tandem/ops/add.h\"\n");
  EXPECT_EQ(listed(rank_breaches(tree())), "tandem/core/shape.h:3: core (rank 0) includes ops (rank 3)\n");
}

TEST_F(MadeUpTree, ReportsAnIncludeOfAnotherRoomOfTheSameRank) {
  write("tandem/image/draw.cpp", "#include \"tandem/report/table.h\"\n");
  EXPECT_EQ(listed(rank_breaches(tree())),
            "tandem/image/draw.cpp:1: image (rank 1) includes report (rank 1)\n");
}

TEST_F(MadeUpTree, ReportsALibraryFileThatIncludesTheProgram) {
  write("tandem/study/max.cpp", "  #  include \"apps/tandem/main.h\"\n");
  write("tandem/study/up.cpp", "#include \"../core/shape.h\"\n");
  EXPECT_EQ(rank_breaches(tree()).size(), 2U);
}

TEST_F(MadeUpTree, ReportsAnAngledOrUnknownTandemInclude) {
  write("tandem/ops/add.cpp", "#include <tandem/core/shape.h>\n#include \"tandem/utils/misc.h\"\n");
  EXPECT_EQ(rank_breaches(tree()).size(), 2U);
}

TEST_F(MadeUpTree, IgnoresIncludesInCommentsAndRawStrings) {
  write("tandem/core/a.h",
        "// #include \"tandem/ops/add.h\"\n/*\n#include \"tandem/ops/add.h\"\n*/\nconst char* t = R\"x(\n"
        "#include \"tandem/ops/add.h\"\n#define X\n)x\";\n");
  EXPECT_EQ(listed(rank_breaches(tree())), "");
  EXPECT_EQ(listed(macros(tree())), "");
}

TEST_F(MadeUpTree, SeesAnIncludeAfterTrickyLiterals) {
  write("tandem/core/a.h",
        "auto url = \"http://x\"; int n = 1'000; char q = '\"'; auto e = \"\\\"//\";\n"
        "#include \"tandem/ops/add.h\"\n");
  EXPECT_EQ(rank_breaches(tree()).size(), 1U);
}

TEST_F(MadeUpTree, ReportsACycleOnce) {
  write("tandem/core/a.h", "#include \"tandem/core/b.h\"\n");
  write("tandem/core/b.h", "#include \"tandem/core/c.h\"\n");
  write("tandem/core/c.h", "#include \"tandem/core/a.h\"\n");
  EXPECT_EQ(listed(include_cycles(tree())),
            "include cycle: tandem/core/a.h -> tandem/core/b.h -> tandem/core/c.h -> tandem/core/a.h\n");
}

TEST_F(MadeUpTree, ReportsAFileThatIncludesItself) {
  write("apps/tandem/a.h", "#include \"a.h\"\n");
  EXPECT_EQ(include_cycles(tree()).size(), 1U);
}

TEST_F(MadeUpTree, ADiamondIsNoCycle) {
  write("tandem/core/top.h", "#include \"tandem/core/l.h\"\n#include \"tandem/core/r.h\"\n");
  write("tandem/core/l.h", "#include \"tandem/core/end.h\"\n");
  write("tandem/core/r.h", "#include \"tandem/core/end.h\"\n");
  write("tandem/core/end.h", "");
  EXPECT_EQ(listed(include_cycles(tree())), "");
}

TEST_F(MadeUpTree, ReportsCudaHeadersInPlainSources) {
  write("tandem/ops/add.cpp", "#include <cuda_runtime.h>\n");
  write("tandem/tensor/tensor.h", "#include <cublasLt.h>\n");
  write("tandem/ops/conv.h", "#include <cudnn.h>\n");
  EXPECT_EQ(cuda_header_breaches(tree()).size(), 3U);
}

TEST_F(MadeUpTree, ReportsACudaHeaderAnywhereInCore) {
  write("tandem/core/rng.cu", "#include <cuda_runtime.h>\n");
  write("tandem/core/rng_cuda.cpp", "#include <cuda_bf16.h>\n");
  EXPECT_EQ(cuda_header_breaches(tree()).size(), 2U);
}

TEST_F(MadeUpTree, AllowsCudaHeadersInHostCodeForCuda) {
  write("tandem/ops/matmul_cuda.cpp", "#include <cublasLt.h>\n");
  write("tandem/device/cuda_stream.h", "#include <cuda_runtime.h>\n");
  EXPECT_EQ(listed(cuda_header_breaches(tree())), "");
}

TEST_F(MadeUpTree, ReportsCudaMemoryOutsideDevice) {
  write("tandem/ops/add.cu",
        "// cudaMalloc in a comment is nothing\n\nauto e = cudaMallocAsync(&p, n, s);\n");
  EXPECT_EQ(listed(cuda_ownership_breaches(tree())),
            "tandem/ops/add.cu:3: cudaMalloc belongs in tandem/device\n");
}

TEST_F(MadeUpTree, ReportsADeviceWideSynchroniseEvenInDevice) {
  write("tandem/device/stream_cuda.cpp", "cudaDeviceSynchronize();\n");
  EXPECT_EQ(cuda_ownership_breaches(tree()).size(), 1U);
}

TEST_F(MadeUpTree, ReportsASourceWithoutItsHeader) {
  write("tandem/ops/add.h", "");
  write("tandem/ops/add_cuda.cpp", "");
  write("tandem/ops/add_simple.cu", "");
  write("tandem/ops/sub.cpp", "");
  write("tandem/core/add.cpp", "");
  EXPECT_EQ(
      listed(sources_without_header(tree())),
      "tandem/core/add.cpp: has no header of its name\ntandem/ops/sub.cpp: has no header of its name\n");
}

TEST_F(MadeUpTree, ReportsAHeaderWithoutPragmaOnce) {
  write("tandem/ops/add.h", "// #pragma once\n#ifndef X\n#endif\n");
  EXPECT_EQ(listed(headers_without_pragma_once(tree())), "tandem/ops/add.h: has no #pragma once\n");
}

TEST_F(MadeUpTree, ReportsAFileOverSixHundredLines) {
  std::string lines;
  for (std::size_t i = 0; i < longest_file; ++i) lines += "\n";
  write("tandem/ops/fits.h", lines);
  write("tandem/ops/long.h", lines + "\n");
  EXPECT_EQ(listed(long_files(tree())), "tandem/ops/long.h: 601 lines, at most 600\n");
}

TEST_F(MadeUpTree, ReportsAMacro) {
  write("tandem/ops/add.cpp", "int a;\n# define ADD(a, b) a + b\n");
  EXPECT_EQ(listed(macros(tree())), "tandem/ops/add.cpp:2: defines a macro\n");
}

}  // namespace
}  // namespace tandem::architecture
