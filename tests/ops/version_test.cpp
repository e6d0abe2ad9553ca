#include "tandem/ops/version.h"

#include "tests/ops/version_case.h"

namespace tandem {
namespace {

TEST(Version, NamesGoThereAndBack) {
  const std::vector<std::string_view> names = {"reference", "parallel", "cuda-simple", "cuda"};
  std::size_t index = 0;
  for (Version version : all_versions) {
    ASSERT_LT(index, names.size());
    EXPECT_EQ(name_of(version), names[index++]);
    EXPECT_EQ(parse_version(name_of(version)), version);
  }
  EXPECT_EQ(index, names.size());
}

TEST(Version, ParsingNamesTheChoices) {
  const std::string start = "expected a version out of reference, parallel, cuda-simple, cuda, got ";
  for (const std::string text : {"", "Cuda", "cuda_simple", "parallel ", "ref"})
    EXPECT_EQ(error_text([&] { parse_version(text); }), start + "'" + text + "'");
}

TEST(Version, KnowsItsBackend) {
  EXPECT_EQ(backend_of(Version::reference), Backend::cpu);
  EXPECT_EQ(backend_of(Version::parallel), Backend::cpu);
  EXPECT_EQ(backend_of(Version::cuda_simple), Backend::cuda);
  EXPECT_EQ(backend_of(Version::cuda), Backend::cuda);
  EXPECT_EQ(tuned_version(cpu_device), Version::parallel);
  EXPECT_EQ(tuned_version(cuda_device(1)), Version::cuda);
}

TEST(Version, RunsOnlyOnItsBackend) {
  EXPECT_NO_THROW(check_version("op", Version::reference, cpu_device));
  EXPECT_NO_THROW(check_version("op", Version::parallel, cpu_device));
  EXPECT_NO_THROW(check_version("op", Version::cuda_simple, cuda_device()));
  EXPECT_NO_THROW(check_version("op", Version::cuda, cuda_device(3)));
  EXPECT_EQ(error_text([] { check_version("op", Version::cuda, cpu_device); }),
            "[op] version cuda does not run on cpu");
  EXPECT_EQ(error_text([] { check_version("op", Version::cuda_simple, cpu_device); }),
            "[op] version cuda-simple does not run on cpu");
  EXPECT_EQ(error_text([] { check_version("op", Version::reference, cuda_device(3)); }),
            "[op] version reference does not run on cuda:3");
  EXPECT_EQ(error_text([] { check_version("op", Version::parallel, cuda_device()); }),
            "[op] version parallel does not run on cuda:0");
}

class OnVersion : public testing::TestWithParam<Version> {};

TEST_P(OnVersion, CallsTheVersionThatWasAskedFor) {
  std::vector<Version> called;
  on_version(GetParam(), device_of(GetParam()), "op", [&]<Version V>() { called.push_back(V); });
  EXPECT_EQ(called, std::vector<Version>{GetParam()});
}

TEST_P(OnVersion, CallsNothingOnTheWrongDevice) {
  const Device wrong = backend_of(GetParam()) == Backend::cuda ? cpu_device : cuda_device();
  bool called = false;
  error_text([&] { on_version(GetParam(), wrong, "op", [&]<Version>() { called = true; }); });
  EXPECT_FALSE(called);
}

INSTANTIATE_TEST_SUITE_P(Versions, OnVersion, testing::ValuesIn(test_versions()), version_name);

// The tests of the versions rely on it to see what was not written.
class Poison : public testing::TestWithParam<Device> {};

TEST_P(Poison, LiesInTheNextTensorOfItsSize) {
  const Device device = GetParam();
  const std::byte* poisoned = poison_next({37, 11}, DType::f32, device);
  const bool pool_keeps_blocks = pool_statistics(device).bytes_cached > 0;  // not under AddressSanitizer
  const Tensor next = Tensor::empty({37, 11}, DType::f32, device);
  EXPECT_EQ(next.bytes() == poisoned, pool_keeps_blocks);
}

INSTANTIATE_TEST_SUITE_P(Devices, Poison, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
