#include "tandem/nn/whitening.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"

namespace tandem {
namespace {

// One value of a patch, in the order of the filters' axes.
struct PatchValue {
  std::int64_t channel, y, x;
};

std::vector<PatchValue> patch_values(std::int64_t channels, YX kernel) {
  std::vector<PatchValue> values;
  for (std::int64_t channel = 0; channel < channels; ++channel)
    for (std::int64_t y = 0; y < kernel.y; ++y)
      for (std::int64_t x = 0; x < kernel.x; ++x) values.push_back({channel, y, x});
  return values;
}

// Over all patches: the sum of every value, and of every product of two.
struct PatchSums {
  std::vector<std::int64_t> first, second;

  explicit PatchSums(std::size_t size) : first(size), second(size * size) {}
};

// Adds the patches of one image. Its rows are copied channel by channel, so that sums run over columns.
void add_image(const std::uint8_t* image, const Shape& shape, YX kernel,
               const std::vector<PatchValue>& values, std::vector<std::int32_t>& planes, PatchSums& sums) {
  const std::int64_t height = shape[1], width = shape[2], channels = shape[3];
  planes.resize(static_cast<std::size_t>(channels * height * width));
  for (std::int64_t pixel = 0; pixel < height * width; ++pixel)
    for (std::int64_t channel = 0; channel < channels; ++channel)
      planes[static_cast<std::size_t>(channel * height * width + pixel)] = image[pixel * channels + channel];
  const std::int64_t columns = width - kernel.x + 1;
  for (std::int64_t row = 0; row + kernel.y <= height; ++row) {
    const auto line = [&](const PatchValue& value) {
      return planes.data() + (value.channel * height + row + value.y) * width + value.x;
    };
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int32_t* const a = line(values[i]);
      sums.first[i] += std::accumulate(a, a + columns, std::int64_t{0});
      for (std::size_t j = 0; j <= i; ++j) {
        const std::int32_t* const b = line(values[j]);
        // Fewer than 2^31 / 255² products fit 32 bits.
        constexpr std::int64_t block = 32768;
        for (std::int64_t x = 0; x < columns; x += block) {
          const std::int64_t end = std::min(columns, x + block);
          std::uint32_t sum = 0;
          for (std::int64_t at = x; at < end; ++at) sum += static_cast<std::uint32_t>(a[at] * b[at]);
          sums.second[i * values.size() + j] += sum;
        }
      }
    }
  }
}

PatchSums sum_patches(const Tensor& images, YX kernel, const std::vector<PatchValue>& values) {
  PatchSums total(values.size());
  std::mutex mutex;
  const std::int64_t bytes = images.numel() / images.size(0);
  parallel_for(images.size(0), 16, [&](std::int64_t begin, std::int64_t end) {
    PatchSums sums(values.size());
    std::vector<std::int32_t> planes;
    for (std::int64_t i = begin; i < end; ++i)
      add_image(images.data<std::uint8_t>() + i * bytes, images.shape(), kernel, values, planes, sums);
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < sums.first.size(); ++i) total.first[i] += sums.first[i];
    for (std::size_t i = 0; i < sums.second.size(); ++i) total.second[i] += sums.second[i];
  });
  return total;
}

using Matrix = std::vector<std::vector<double>>;

// The mean of the products of normalized values.
Matrix second_moments(const PatchSums& sums, std::int64_t patches, const std::vector<PatchValue>& values,
                      const PixelNorm& norm) {
  const auto count = static_cast<double>(patches);
  const std::size_t size = values.size();
  Matrix moments(size, std::vector<double>(size));
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const double mean_i = norm.mean[values[i].channel], mean_j = norm.mean[values[j].channel];
      const double product = static_cast<double>(sums.second[i * size + j]) / (255.0 * 255.0 * count);
      const double first_i = static_cast<double>(sums.first[i]) / (255.0 * count);
      const double first_j = static_cast<double>(sums.first[j]) / (255.0 * count);
      const double centered = product - mean_i * first_j - mean_j * first_i + mean_i * mean_j;
      const double scale = static_cast<double>(norm.stddev[values[i].channel]) *
                           static_cast<double>(norm.stddev[values[j].channel]);
      moments[i][j] = moments[j][i] = centered / scale;
    }
  return moments;
}

// Rotates rows and columns p and q of the symmetric matrix so that its element (p, q) becomes 0, and the rows
// of the vectors likewise.
void rotate(Matrix& matrix, Matrix& vectors, std::size_t p, std::size_t q) {
  if (matrix[p][q] == 0) return;
  const double ratio = (matrix[q][q] - matrix[p][p]) / (2 * matrix[p][q]);
  const double tangent = (ratio < 0 ? -1 : 1) / (std::abs(ratio) + std::hypot(1.0, ratio));
  const double cosine = 1 / std::hypot(1.0, tangent), sine = tangent * cosine;
  const auto turn = [&](double& a, double& b) {
    const double old = a;
    a = cosine * old - sine * b;
    b = sine * old + cosine * b;
  };
  for (std::size_t i = 0; i < matrix.size(); ++i) turn(matrix[i][p], matrix[i][q]);
  for (std::size_t i = 0; i < matrix.size(); ++i) turn(matrix[p][i], matrix[q][i]);
  for (std::size_t i = 0; i < matrix.size(); ++i) turn(vectors[p][i], vectors[q][i]);
}

struct Eigenvector {
  double value;
  std::vector<double> elements;
};

// Of a symmetric matrix, by Jacobi's method, the largest value first.
std::vector<Eigenvector> eigenvectors(Matrix matrix) {
  constexpr int max_sweeps = 50;
  const std::size_t size = matrix.size();
  Matrix vectors(size, std::vector<double>(size));
  for (std::size_t i = 0; i < size; ++i) vectors[i][i] = 1;
  for (int sweep = 0; sweep < max_sweeps; ++sweep) {
    double beside = 0, all = 0;
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j) (i == j ? all : beside) += matrix[i][j] * matrix[i][j];
    if (beside <= 1e-30 * (all + beside)) break;
    for (std::size_t p = 0; p < size; ++p)
      for (std::size_t q = p + 1; q < size; ++q) rotate(matrix, vectors, p, q);
  }
  std::vector<Eigenvector> result;
  for (std::size_t i = 0; i < size; ++i) {
    const auto largest =
        std::ranges::max_element(vectors[i], {}, [](double element) { return std::abs(element); });
    if (*largest < 0)
      for (double& element : vectors[i]) element = -element;
    result.push_back({matrix[i][i], std::move(vectors[i])});
  }
  std::ranges::stable_sort(result, std::ranges::greater(), &Eigenvector::value);
  return result;
}

}  // namespace

Tensor whitening_filters(const Tensor& images, const PixelNorm& norm, YX kernel, double epsilon) {
  check(images.defined() && images.dtype() == DType::u8 && images.rank() == 4 && !images.device().is_cuda() &&
            images.size(0) > 0,
        "[whitening] expected images of u8 (n, height, width, channels) on the CPU, got {}",
        images.defined() ? images.shape().to_string() : "none");
  const std::int64_t channels = images.size(3);
  check(channels >= 1 && channels <= max_image_channels, "[whitening] expected 1 to {} channels, got {}",
        max_image_channels, channels);
  check(kernel.y >= 1 && kernel.x >= 1 && images.size(1) >= kernel.y && images.size(2) >= kernel.x,
        "[whitening] expected a kernel no larger than the images, {}x{}, got {}x{}", images.size(1),
        images.size(2), kernel.y, kernel.x);
  check(epsilon > 0, "[whitening] expected an epsilon above 0, got {}", epsilon);
  const Tensor contiguous = images.contiguous();
  const std::vector<PatchValue> values = patch_values(channels, kernel);
  const std::int64_t patches =
      images.size(0) * (images.size(1) - kernel.y + 1) * (images.size(2) - kernel.x + 1);
  const std::vector<Eigenvector> found =
      eigenvectors(second_moments(sum_patches(contiguous, kernel, values), patches, values, norm));
  std::vector<float> filters;
  for (const double sign : {1.0, -1.0})
    for (const Eigenvector& vector : found)
      for (const double element : vector.elements)
        filters.push_back(
            static_cast<float>(sign * element / std::sqrt(std::max(vector.value, 0.0) + epsilon)));
  return Tensor::from(filters, {2 * std::ssize(values), channels, kernel.y, kernel.x});
}

}  // namespace tandem
