// What is said when the plugin is missing, does not fit, or does not connect. No MPI is needed here.
#include "tandem/dist/mpi_plugin.h"

#include <fmt/format.h>
#include <link.h>

#include <cstdlib>

#include "tandem/dist/connect_group.h"
#include "tests/core/error_text.h"
#include "tests/paths.h"

namespace tandem {
namespace {

const std::string mpicc = fmt::format(
    "mpicc -shared -fPIC -O2 -I{0} -o libtandem_mpi.so {0}/tandem/dist/mpi/mpi_transport.c", source_folder);

LaunchedRank rank_of_four(Launcher launcher) {
  LaunchedRank launched{.launcher = launcher};
  launched.place.size = 4;
  return launched;
}

class FakePlugin : public testing::Test {
 protected:
  explicit FakePlugin() { setenv("TANDEM_MPI_PLUGIN", TANDEM_FAKE_PLUGIN, 1); }
  ~FakePlugin() override {
    unsetenv("TANDEM_MPI_PLUGIN");
    unsetenv("TANDEM_FAKE_MPI");
  }

  static std::string error_of(const char* what, const GroupOptions& options = {}) {
    setenv("TANDEM_FAKE_MPI", what, 1);
    return error_text([&] { connect_group(rank_of_four(Launcher::slurm), options); });
  }
};

TEST_F(FakePlugin, OfAnotherMpi_IsRefused) {
  EXPECT_EQ(error_of("alone"),
            std::string("[group] srun started 4 ranks, but MPI says 1: they were started by another MPI than "
                        "that of the plugin " TANDEM_FAKE_PLUGIN
                        ", or srun without --mpi=pmix; build one that fits with \"") +
                mpicc + "\"");
}

TEST_F(FakePlugin, OfAnotherVersion_IsRefused) {
  EXPECT_EQ(error_of("version"),
            std::string("[group] the MPI plugin " TANDEM_FAKE_PLUGIN
                        " has version 2 of the interface, this program needs 1; build it "
                        "with \"") +
                mpicc + "\"");
}

TEST_F(FakePlugin, ThatCannotConnect_GivesItsReason) {
  EXPECT_EQ(error_of("error"), "[group] MPI cannot connect the ranks: MPI_Init_thread failed: no network");
}

TEST_F(FakePlugin, ThatWaitsForARank_IsGivenUp) {
  setenv("TANDEM_FAKE_MPI", "hang", 1);
  std::string text;
  try {
    connect_group(rank_of_four(Launcher::open_mpi), {.start_limit_s = 0.1});
  } catch (const LostRank& error) {
    text = error.what();
  }
  EXPECT_EQ(text, "[group] the ranks have not connected within 0.1 s: some have not started");
}

TEST_F(FakePlugin, OfOneRank_IsNotOpened) {
  setenv("TANDEM_FAKE_MPI", "error", 1);
  LaunchedRank launched{.launcher = Launcher::slurm};
  EXPECT_EQ(connect_group(launched, {})->place().size, 1);
  EXPECT_EQ(connect_group({}, {})->place().size, 1);
}

TEST(MpiPlugin, MissingFile_IsNamed) {
  const LaunchedRank launched = rank_of_four(Launcher::slurm);
  EXPECT_EQ(error_text([&] { MpiPlugin({"/nowhere/a.so"}, launched); }),
            "[group] srun started 4 ranks, but there is no MPI plugin /nowhere/a.so, which TANDEM_MPI_PLUGIN "
            "names");
  EXPECT_EQ(
      error_text([&] {
        MpiPlugin({"/nowhere/a.so", "/nowhere/b.so"}, launched);
      }),
      std::string("[group] srun started 4 ranks, but the MPI plugin libtandem_mpi.so was not found; build "
                  "it with \"") +
          mpicc + "\" and set TANDEM_MPI_PLUGIN to its path");
}

TEST(MpiPlugin, AnotherFile_IsRefused) {
  const LaunchedRank launched = rank_of_four(Launcher::open_mpi);
  const std::string file = std::string(source_folder) + "/README.md";
  const std::string text = error_text([&] { MpiPlugin({file}, launched); });
  EXPECT_TRUE(text.starts_with("[group] the MPI plugin " + file + " cannot be loaded: ")) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(MpiPlugin, Files_AreThoseOfTheVariableOrBesideTheProgram) {
  using Files = std::vector<std::filesystem::path>;
  EXPECT_EQ(mpi_plugin_files({{"TANDEM_MPI_PLUGIN", "mine.so"}}), (Files{"mine.so"}));
  const Files files = mpi_plugin_files({});
  ASSERT_EQ(files.size(), 3U);
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(files[1], program.parent_path().parent_path() / "lib/tandem/libtandem_mpi.so");
}

TEST(MpiPlugin, Program_IsNotLinkedToMpi) {
  std::string libraries;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<std::string*>(to) += std::string(info->dlpi_name) + "\n";
        return 0;
      },
      &libraries);
  for (const char* name : {"libmpi", "libopen-", "libpmi"})
    EXPECT_EQ(libraries.find(name), std::string::npos) << libraries;
}

}  // namespace
}  // namespace tandem
