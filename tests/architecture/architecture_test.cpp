// Checks the repository against the architecture rules, and tests each rule on synthetic source trees.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/architecture/rules.h"
#include "tests/architecture/source_tree.h"
#include "tests/paths.h"

namespace tandem::architecture {
namespace {

namespace fs = std::filesystem;

std::string join_lines(const Violations& violations) {
  std::string text;
  for (const auto& violation : violations) text += violation + "\n";
  return text;
}

Sources repository() {
  return read_sources(source_folder, {"tandem", "apps"});
}

TEST(Architecture, Repository_HasSources) {
  EXPECT_GE(repository().size(), 4U);
}
TEST(Architecture, EverySource_IsInAKnownRoom) {
  EXPECT_EQ(join_lines(unknown_rooms(repository())), "");
}
TEST(Architecture, Rooms_IncludeOnlyThemselvesAndLowerRanks) {
  EXPECT_EQ(join_lines(rank_violations(repository())), "");
}
TEST(Architecture, Includes_HaveNoCycles) {
  EXPECT_EQ(join_lines(include_cycles(repository())), "");
}
TEST(Architecture, CudaHeaders_OnlyInCudaSources) {
  EXPECT_EQ(join_lines(cuda_header_violations(repository())), "");
}
TEST(Architecture, CudaResources_OnlyInDevice) {
  EXPECT_EQ(join_lines(cuda_ownership_violations(repository())), "");
}
TEST(Architecture, EverySource_HasAHeader) {
  EXPECT_EQ(join_lines(sources_without_header(repository())), "");
}
TEST(Architecture, EveryHeader_HasPragmaOnce) {
  EXPECT_EQ(join_lines(headers_without_pragma_once(repository())), "");
}
TEST(Architecture, UmbrellaHeaders_ListTheirRoom) {
  EXPECT_GE(public_headers(repository()).size(), 50U);
  EXPECT_EQ(join_lines(umbrella_violations(repository())), "");
}
TEST(Architecture, PublicHeaders_IncludeOnlyPublicHeaders) {
  EXPECT_EQ(join_lines(public_include_violations(repository())), "");
}
TEST(Architecture, KernelHeaders_DeclareInDetail) {
  EXPECT_EQ(join_lines(kernel_namespace_violations(repository())), "");
}
TEST(Architecture, Sources_DefineNoMacros) {
  EXPECT_EQ(join_lines(macros(repository())), "");
}
TEST(Architecture, Files_AreNotTooLong) {
  const auto all = read_sources(source_folder, {"tandem", "apps", "tests", "bench", "examples"});
  EXPECT_EQ(join_lines(long_files(all)), "");
}

// A source tree in a temporary folder.
class SyntheticTree : public ::testing::Test {
 protected:
  SyntheticTree() {
    std::string name = (fs::temp_directory_path() / "tandem-architecture-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create a folder like " + name);
    root_ = name;
  }
  ~SyntheticTree() override {
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

TEST_F(SyntheticTree, ValidTree_PassesAllRules) {
  write("tandem/core/shape.h", "#pragma once\n#include <vector>\n");
  write("tandem/ops/add.h", "#pragma once\n#include \"tandem/core/shape.h\"\n");
  write("tandem/ops/add.cpp", "#include \"tandem/ops/add.h\"\n#include <omp.h>\n");
  write("tandem/ops/add.cu", "#include \"tandem/ops/add.h\"\n#include <cuda_runtime.h>\n");
  write("tandem/device/cuda_call.h", "#pragma once\n#include <cuda_runtime.h>\nvoid* p = cudaMalloc();\n");
  write("apps/tandem/main.cpp", "#include \"tandem/ops/add.h\"\n#include \"command.h\"\n");
  write("apps/tandem/command.h", "#pragma once\n");
  const auto files = tree();
  EXPECT_EQ(files.size(), 7U);
  for (const auto rule :
       {unknown_rooms, rank_violations, include_cycles, cuda_header_violations, cuda_ownership_violations,
        sources_without_header, headers_without_pragma_once, long_files, macros})
    EXPECT_EQ(join_lines(rule(files)), "");
}

TEST_F(SyntheticTree, UnknownRoomAndFileInNoRoom_AreReported) {
  write("tandem/utils/misc.h", "#pragma once\n");
  write("tandem/loose.h", "#pragma once\n");
  EXPECT_EQ(join_lines(unknown_rooms(tree())),
            "tandem/loose.h: is not in a known room\ntandem/utils/misc.h: is not in a known room\n");
}

TEST_F(SyntheticTree, IncludeOfHigherRank_IsReported) {
  write("tandem/core/shape.h", "#pragma once\n\n#include \"tandem/ops/add.h\"\n");
  EXPECT_EQ(join_lines(rank_violations(tree())),
            "tandem/core/shape.h:3: core (rank 0) includes ops (rank 3)\n");
}

TEST_F(SyntheticTree, IncludeOfSameRank_IsReported) {
  write("tandem/image/draw.cpp", "#include \"tandem/text/table.h\"\n");
  EXPECT_EQ(join_lines(rank_violations(tree())),
            "tandem/image/draw.cpp:1: image (rank 1) includes text (rank 1)\n");
}

TEST_F(SyntheticTree, LibraryIncludesProgram_IsReported) {
  write("tandem/study/max.cpp", "  #  include \"apps/tandem/main.h\"\n");
  write("tandem/study/up.cpp", "#include \"../core/shape.h\"\n");
  EXPECT_EQ(rank_violations(tree()).size(), 2U);
}

TEST_F(SyntheticTree, AngledOrUnknownInclude_IsReported) {
  write("tandem/ops/add.cpp", "#include <tandem/core/shape.h>\n#include \"tandem/utils/misc.h\"\n");
  EXPECT_EQ(rank_violations(tree()).size(), 2U);
}

TEST_F(SyntheticTree, IncludesInCommentsAndRawStrings_AreIgnored) {
  write("tandem/core/a.h",
        "// #include \"tandem/ops/add.h\"\n/*\n#include \"tandem/ops/add.h\"\n*/\nconst char* t = R\"x(\n"
        "#include \"tandem/ops/add.h\"\n#define X\n)x\";\n");
  EXPECT_EQ(join_lines(rank_violations(tree())), "");
  EXPECT_EQ(join_lines(macros(tree())), "");
}

TEST_F(SyntheticTree, IncludeAfterQuotesInLiterals_IsFound) {
  write("tandem/core/a.h",
        "auto url = \"http://x\"; int n = 1'000; char q = '\"'; auto e = \"\\\"//\";\n"
        "#include \"tandem/ops/add.h\"\n");
  EXPECT_EQ(rank_violations(tree()).size(), 1U);
}

TEST_F(SyntheticTree, Cycle_IsReportedOnce) {
  write("tandem/core/a.h", "#include \"tandem/core/b.h\"\n");
  write("tandem/core/b.h", "#include \"tandem/core/c.h\"\n");
  write("tandem/core/c.h", "#include \"tandem/core/a.h\"\n");
  EXPECT_EQ(join_lines(include_cycles(tree())),
            "include cycle: tandem/core/a.h -> tandem/core/b.h -> tandem/core/c.h -> tandem/core/a.h\n");
}

TEST_F(SyntheticTree, SelfInclude_IsReported) {
  write("apps/tandem/a.h", "#include \"a.h\"\n");
  EXPECT_EQ(include_cycles(tree()).size(), 1U);
}

TEST_F(SyntheticTree, Diamond_IsNoCycle) {
  write("tandem/core/top.h", "#include \"tandem/core/l.h\"\n#include \"tandem/core/r.h\"\n");
  write("tandem/core/l.h", "#include \"tandem/core/end.h\"\n");
  write("tandem/core/r.h", "#include \"tandem/core/end.h\"\n");
  write("tandem/core/end.h", "");
  EXPECT_EQ(join_lines(include_cycles(tree())), "");
}

TEST_F(SyntheticTree, CudaHeaderInHostSource_IsReported) {
  write("tandem/ops/add.cpp", "#include <cuda_runtime.h>\n");
  write("tandem/tensor/tensor.h", "#include <cublasLt.h>\n");
  write("tandem/ops/conv.h", "#include <cudnn.h>\n");
  EXPECT_EQ(cuda_header_violations(tree()).size(), 3U);
}

TEST_F(SyntheticTree, CudaHeaderInCore_IsReported) {
  write("tandem/core/rng.cu", "#include <cuda_runtime.h>\n");
  write("tandem/core/rng_cuda.cpp", "#include <cuda_bf16.h>\n");
  EXPECT_EQ(cuda_header_violations(tree()).size(), 2U);
}

TEST_F(SyntheticTree, CudaHeaderInCudaHostSource_IsAllowed) {
  write("tandem/ops/matmul_cuda.cpp", "#include <cublasLt.h>\n");
  write("tandem/device/cuda_stream.h", "#include <cuda_runtime.h>\n");
  EXPECT_EQ(join_lines(cuda_header_violations(tree())), "");
}

TEST_F(SyntheticTree, CudaMallocOutsideDevice_IsReported) {
  write("tandem/ops/add.cu",
        "// cudaMalloc in a comment is ignored\n\nauto e = cudaMallocAsync(&p, n, s);\n");
  EXPECT_EQ(join_lines(cuda_ownership_violations(tree())),
            "tandem/ops/add.cu:3: cudaMalloc belongs in tandem/device\n");
}

TEST_F(SyntheticTree, DeviceWideSynchronize_IsReportedInDeviceToo) {
  write("tandem/device/stream_cuda.cpp", "cudaDeviceSynchronize();\n");
  EXPECT_EQ(cuda_ownership_violations(tree()).size(), 1U);
}

TEST_F(SyntheticTree, SourceWithoutHeader_IsReported) {
  write("tandem/ops/add.h", "");
  write("tandem/ops/add_cuda.cpp", "");
  write("tandem/ops/add_simple.cu", "");
  write("tandem/ops/sub.cpp", "");
  write("tandem/core/add.cpp", "");
  write("tandem/ops/conv/pool.h", "");
  write("tandem/ops/conv/pool.cu", "");
  write("tandem/ops/conv/add_tiled.cpp", "");  // its header is in the parent folder
  EXPECT_EQ(join_lines(sources_without_header(tree())),
            "tandem/core/add.cpp: has no header of the same name\ntandem/ops/sub.cpp: has no header of the "
            "same name\n");
}

TEST_F(SyntheticTree, HeaderWithoutPragmaOnce_IsReported) {
  write("tandem/ops/add.h", "// #pragma once\n#ifndef X\n#endif\n");
  EXPECT_EQ(join_lines(headers_without_pragma_once(tree())), "tandem/ops/add.h: has no #pragma once\n");
}

TEST_F(SyntheticTree, FileOverTheMaximum_IsReported) {
  std::string lines;
  for (std::size_t i = 0; i < max_lines; ++i) lines += "\n";
  write("tandem/ops/fits.h", lines);
  write("tandem/ops/long.h", lines + "\n");
  EXPECT_EQ(join_lines(long_files(tree())), "tandem/ops/long.h: 601 lines, the maximum is 600\n");
}

TEST_F(SyntheticTree, PublicHeaderIncludesInternalOne_IsReported) {
  write("tandem/tandem.h", "#pragma once\n#include \"tandem/nn.h\"\n");
  write("tandem/nn.h", "#pragma once\n#include \"tandem/nn/linear.h\"\n");
  write("tandem/nn/linear.h", "#pragma once\n#include \"tandem/nn/secret.h\"\n");
  write("tandem/nn/secret.h", "#pragma once\n");
  EXPECT_EQ(join_lines(umbrella_violations(tree())), "");
  EXPECT_EQ(join_lines(public_include_violations(tree())),
            "tandem/nn/linear.h:2: a public header includes the internal tandem/nn/secret.h\n");
}

TEST_F(SyntheticTree, SourceIncludesUmbrella_IsReported) {
  write("tandem/nn.h", "#pragma once\n");
  write("tandem/nn/linear.cpp", "#include \"tandem/nn.h\"\n");
  EXPECT_EQ(join_lines(public_include_violations(tree())),
            "tandem/nn/linear.cpp:1: includes the umbrella header tandem/nn.h\n");
}

TEST_F(SyntheticTree, UmbrellaListsAnotherRoomOrIsNotListed_IsReported) {
  write("tandem/tandem.h", "#pragma once\n");
  write("tandem/nn.h", "#pragma once\n#include \"tandem/ops/add.h\"\n");
  EXPECT_EQ(join_lines(umbrella_violations(tree())),
            "tandem/nn.h:2: lists tandem/ops/add.h\ntandem/tandem.h does not list tandem/nn.h\n");
}

TEST_F(SyntheticTree, KernelHeaderPublicOrOutsideDetail_IsReported) {
  write("tandem/ops.h", "#pragma once\n#include \"tandem/ops/add_kernel.h\"\n");
  write("tandem/ops/add_kernel.h", "#pragma once\nnamespace tandem {\n}\n");
  EXPECT_EQ(join_lines(kernel_namespace_violations(tree())),
            "tandem/ops/add_kernel.h: a kernel header is public\n"
            "tandem/ops/add_kernel.h:2: a kernel header must declare in tandem::detail\n");
}

TEST_F(SyntheticTree, Macro_IsReported) {
  write("tandem/ops/add.cpp", "int a;\n# define ADD(a, b) a + b\n");
  EXPECT_EQ(join_lines(macros(tree())), "tandem/ops/add.cpp:2: defines a macro\n");
}

}  // namespace
}  // namespace tandem::architecture
