#include "tandem/ops/version.h"

#include "tandem/device/buffer.h"
#include "tandem/ops/version_kernel.h"
#include "tests/ops/version_case.h"

namespace tandem {
namespace {

TEST(Version, NameAndParse_RoundTrip) {
  const std::vector<std::string_view> names = {"reference", "simd", "parallel", "cuda-simple", "cuda"};
  std::size_t index = 0;
  for (Version version : all_versions) {
    ASSERT_LT(index, names.size());
    EXPECT_EQ(name_of(version), names[index++]);
    EXPECT_EQ(parse_version(name_of(version)), version);
  }
  EXPECT_EQ(index, names.size());
}

TEST(Version, UnknownName_ErrorNamesChoices) {
  const std::string start = "expected a version (reference, simd, parallel, cuda-simple or cuda), got ";
  for (const std::string text : {"", "Cuda", "cuda_simple", "parallel ", "ref"})
    EXPECT_EQ(error_text([&] { parse_version(text); }), start + "'" + text + "'");
}

TEST(Version, BackendAndTunedVersion_Match) {
  EXPECT_EQ(backend_of(Version::reference), Backend::cpu);
  EXPECT_EQ(backend_of(Version::simd), Backend::cpu);
  EXPECT_EQ(backend_of(Version::parallel), Backend::cpu);
  EXPECT_EQ(backend_of(Version::cuda_simple), Backend::cuda);
  EXPECT_EQ(backend_of(Version::cuda), Backend::cuda);
  EXPECT_EQ(tuned_version(cpu_device), Version::parallel);
  EXPECT_EQ(tuned_version(cuda_device(1)), Version::cuda);
}

TEST(Version, WrongBackend_Throws) {
  EXPECT_NO_THROW(detail::check_version("op", Version::reference, cpu_device));
  EXPECT_NO_THROW(detail::check_version("op", Version::parallel, cpu_device));
  EXPECT_NO_THROW(detail::check_version("op", Version::cuda_simple, cuda_device()));
  EXPECT_NO_THROW(detail::check_version("op", Version::cuda, cuda_device(3)));
  EXPECT_EQ(error_text([] { detail::check_version("op", Version::cuda, cpu_device); }),
            "[op] expected a version that runs on cpu, got cuda");
  EXPECT_EQ(error_text([] { detail::check_version("op", Version::cuda_simple, cpu_device); }),
            "[op] expected a version that runs on cpu, got cuda-simple");
  EXPECT_EQ(error_text([] { detail::check_version("op", Version::reference, cuda_device(3)); }),
            "[op] expected a version that runs on cuda:3, got reference");
  EXPECT_EQ(error_text([] { detail::check_version("op", Version::parallel, cuda_device()); }),
            "[op] expected a version that runs on cuda:0, got parallel");
}

TEST(Version, Simd_UsesOneThread) {
  const ScopedThreadCount several(3);
  int threads = 0;
  const auto count_threads = [&]<Version>() { threads = thread_count(); };
  detail::on_version(Version::simd, cpu_device, "op", count_threads);
  EXPECT_EQ(threads, 1);
  detail::on_version(Version::parallel, cpu_device, "op", count_threads);
  EXPECT_EQ(threads, 3);
}

class OnVersion : public testing::TestWithParam<Version> {};

TEST_P(OnVersion, CallsTheGivenVersion) {
  std::vector<Version> called;
  detail::on_version(GetParam(), device_of(GetParam()), "op", [&]<Version V>() { called.push_back(V); });
  // simd is the kernel of parallel on one thread.
  EXPECT_EQ(called, std::vector<Version>{GetParam() == Version::simd ? Version::parallel : GetParam()});
}

TEST_P(OnVersion, WrongDevice_CallsNothing) {
  const Device wrong = backend_of(GetParam()) == Backend::cuda ? cpu_device : cuda_device();
  bool called = false;
  error_text([&] { detail::on_version(GetParam(), wrong, "op", [&]<Version>() { called = true; }); });
  EXPECT_FALSE(called);
}

INSTANTIATE_TEST_SUITE_P(Versions, OnVersion, testing::ValuesIn(test_versions()), version_name);

// The tests of the versions rely on this to find unwritten elements.
class Poison : public testing::TestWithParam<Device> {};

TEST_P(Poison, NextTensorOfTheSize_ReusesTheBlock) {
  const Device device = GetParam();
  const std::byte* poisoned = poison_next({37, 11}, DType::f32, device);
  const bool pool_keeps_blocks = pool_statistics(device).bytes_cached > 0;  // not under AddressSanitizer
  const Tensor next = Tensor::empty({37, 11}, DType::f32, device);
  EXPECT_EQ(next.bytes() == poisoned, pool_keeps_blocks);
}

INSTANTIATE_TEST_SUITE_P(Devices, Poison, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
