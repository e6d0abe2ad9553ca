// Shared by the tests of maximum, correlate and xxt: parameterization over every version that runs on this
// machine and over stored cases, poisoned memory that reveals unwritten elements, and comparisons of bits or
// relative to Σ|products|.
#pragma once

#include <cctype>
#include <cstring>
#include <limits>
#include <ostream>

#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/version.h"
#include "tests/golden/golden.h"
#include "tests/ops/op_test.h"

namespace tandem {

inline Device device_of(Version version) {
  return backend_of(version) == Backend::cuda ? cuda_device() : cpu_device;
}

inline std::vector<Version> test_versions() {
  std::vector<Version> versions;
  for (Version version : all_versions)
    if (backend_of(version) == Backend::cpu || cuda_device_count() > 0) versions.push_back(version);
  return versions;
}

// The versions that `device` cannot run.
inline std::vector<Version> unsupported_versions(Device device) {
  std::vector<Version> versions;
  for (Version version : all_versions)
    if (backend_of(version) != device.backend) versions.push_back(version);
  return versions;
}

// Replaces what gtest does not allow in test names.
inline std::string identifier(std::string text) {
  for (char& letter : text)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return text;
}

inline std::string version_name(const testing::TestParamInfo<Version>& info) {
  return identifier(std::string(name_of(info.param)));
}

// A version and a dtype it computes in.
struct VersionCase {
  Version version;
  DType dtype;

  Device device() const { return device_of(version); }
};

inline std::vector<VersionCase> version_cases(std::initializer_list<DType> dtypes) {
  std::vector<VersionCase> cases;
  for (Version version : test_versions())
    for (DType dtype : dtypes) cases.push_back({version, dtype});
  return cases;
}

inline std::string version_case_name(const testing::TestParamInfo<VersionCase>& info) {
  return identifier(std::string(name_of(info.param.version)) + "_" + std::string(name_of(info.param.dtype)));
}

// A version and a stored case of tests/golden.
struct StoredCase {
  Version version;
  golden::Case stored;

  Device device() const { return device_of(version); }
  // The stored array in its own dtype; every integer exact.
  Tensor tensor(const std::string& key) const {
    const golden::Array& array = stored.array(key);
    for (DType dtype : {DType::f32, DType::f64, DType::u8, DType::i32, DType::i64})
      if (name_of(dtype) == array.dtype)
        return on_dtype(TypeList<float, double, std::uint8_t, std::int32_t, std::int64_t>{}, dtype, "golden",
                        [&]<class T>() {
                          return Tensor::from(array.values<T>(),
                                              Shape(std::span<const std::int64_t>(array.shape)), device());
                        });
    fail("[golden] unknown dtype {}", array.dtype);
  }
};

inline void PrintTo(const StoredCase& one, std::ostream* out) {
  *out << name_of(one.version) << ", " << one.stored.name;
}

inline std::vector<StoredCase> stored_cases(const std::string& file) {
  std::vector<StoredCase> cases;
  for (const golden::Case& stored : golden::load(file))
    for (Version version : test_versions()) cases.push_back({version, stored});
  return cases;
}

inline std::string stored_case_name(const testing::TestParamInfo<StoredCase>& info) {
  return identifier(std::string(name_of(info.param.version)) + "_" + info.param.stored.name);
}

// Relative to Σ|products| of an element, because versions sum in different orders.
inline double sum_tolerance(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-5 : 0;
}

// Checks that every element is within tolerance × its magnitude.
inline void expect_within(const Tensor& actual, const std::vector<double>& expected,
                          const std::vector<double>& magnitudes, double tolerance) {
  const std::vector<double> values = values_of(actual);
  ASSERT_EQ(values.size(), expected.size());
  ASSERT_EQ(values.size(), magnitudes.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * magnitudes[i]) << "element " << i;
}

// Checks for exact equality; NaN equals NaN.
inline void expect_same_values(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.shape(), expected.shape());
  ASSERT_EQ(actual.dtype(), expected.dtype());
  on_dtype(AllTypes{}, actual.dtype(), "test", [&]<class T>() {
    if constexpr (std::is_integral_v<T>)
      EXPECT_EQ(actual.to_vector<T>(), expected.to_vector<T>());
    else
      expect_values(actual, values_of(expected), 0);
  });
}

inline std::vector<std::byte> bits_of(const Tensor& tensor) {
  const Tensor host = tensor.contiguous().cpu();
  const auto size = static_cast<std::size_t>(host.numel()) * size_of(host.dtype());
  return size == 0 ? std::vector<std::byte>{} : std::vector<std::byte>(host.bytes(), host.bytes() + size);
}

inline Tensor as_f64(const Tensor& tensor) {
  return tensor_of(values_of(tensor), tensor.shape(), DType::f64);
}

inline Tensor absolute(const Tensor& tensor) {
  std::vector<double> values = values_of(tensor);
  for (double& value : values) value = std::abs(value);
  return tensor_of(values, tensor.shape(), DType::f64);
}

// Fills the block that the next tensor of this size gets from the pool with NaN (77 for integers), which
// reveals elements that an operation does not write. Returns the address of the block.
inline const std::byte* poison_next(const Shape& shape, DType dtype, Device device) {
  const double value = is_floating(dtype) ? std::numeric_limits<double>::quiet_NaN() : 77;
  const Tensor filled =
      tensor_of(std::vector<double>(static_cast<std::size_t>(shape.numel()), value), shape, dtype, device);
  return filled.bytes();
}

// Sets the number of threads until it is destroyed, if necessary to more than there are CPUs.
struct ScopedThreadCount {
  explicit ScopedThreadCount(int count) { set_thread_count(count); }
  ~ScopedThreadCount() { set_thread_count(usable_cpus()); }
  ScopedThreadCount(const ScopedThreadCount&) = delete;
  ScopedThreadCount& operator=(const ScopedThreadCount&) = delete;
};

}  // namespace tandem
