#include "tandem/data/synthetic/plates_canvas.h"

namespace tandem {
namespace {

// Each pixel gets `share` of each of its two neighbors, first in rows, then in columns.
void blur(Plane& plane, float share) {
  const int size = plane.size();
  std::vector<float> above(static_cast<std::size_t>(size)), line(static_cast<std::size_t>(size));
  for (int y = 0; y < size; ++y) {
    float* row = plane.row(y);
    std::copy(row, row + size, line.begin());
    for (int x = 1; x + 1 < size; ++x)
      row[x] = (1 - 2 * share) * line[static_cast<std::size_t>(x)] +
               share * (line[static_cast<std::size_t>(x) - 1] + line[static_cast<std::size_t>(x) + 1]);
  }
  std::copy(plane.row(0), plane.row(0) + size, above.begin());
  for (int y = 1; y + 1 < size; ++y) {
    float* row = plane.row(y);
    const float* next = plane.row(y + 1);
    std::copy(row, row + size, line.begin());
    for (int x = 0; x < size; ++x) {
      const auto i = static_cast<std::size_t>(x);
      row[x] = (1 - 2 * share) * line[i] + share * (above[i] + next[x]);
    }
    above.swap(line);
  }
}

// The lighting of a row: a diffuse factor on the colors, and a specular term added to them.
void light_row(const Canvas& canvas, const Light& light, int y, float* factor, float* shine) {
  const int size = canvas.size();
  const float* above = canvas.height.row(std::max(y - 1, 0));
  const float* here = canvas.height.row(y);
  const float* under = canvas.height.row(std::min(y + 1, size - 1));
  const float* gloss = canvas.gloss.row(y);
  // The half vector between light and camera (Blinn-Phong).
  const float length = std::sqrt(light.x * light.x + light.y * light.y + (light.z + 1) * (light.z + 1));
  const float half_x = light.x / length, half_y = light.y / length, half_z = (light.z + 1) / length;
  const float middle = 0.5f * static_cast<float>(size);
  const float dy = (static_cast<float>(y) - middle) / middle;
  for (int x = 1; x + 1 < size; ++x) {
    const float slope_x = 0.5f * (here[x + 1] - here[x - 1]), slope_y = 0.5f * (under[x] - above[x]);
    const float normal = 1 / std::sqrt(slope_x * slope_x + slope_y * slope_y + 1);
    const float facing = (light.z - slope_x * light.x - slope_y * light.y) * normal;
    const float dx = (static_cast<float>(x) - middle) / middle;
    const float corner = 1 - light.vignette * (dx * dx + dy * dy);
    factor[x] = (light.ambient + (1 - light.ambient) * std::max(facing, 0.0f) / light.z) * corner;
    float mirror = std::max((half_z - slope_x * half_x - slope_y * half_y) * normal, 0.0f);
    for (int i = 0; i < 5; ++i) mirror *= mirror;
    shine[x] = gloss[x] * mirror;
  }
  for (float* line : {factor, shine}) {  // border pixels have only one neighbor
    line[0] = line[1];
    line[size - 1] = line[size - 2];
  }
}

}  // namespace

float PlateRng::unit() {
  if (used_ == 4) {
    words_ = random_block(seed_, stream_, next_++);
    used_ = 0;
  }
  return to_unit_float(words_.word[used_++]);
}

Rgb PlateRng::vary(Rgb color, float spread) {
  const float level = 1 + spread * approx_normal() * 0.5f;
  return {std::clamp(level * color.red + 0.2f * spread * approx_normal(), 0.02f, 1.0f),
          std::clamp(level * color.green + 0.2f * spread * approx_normal(), 0.02f, 1.0f),
          std::clamp(level * color.blue + 0.2f * spread * approx_normal(), 0.02f, 1.0f)};
}

Words4 PlateRng::words(std::uint64_t block) const {
  return random_block(seed_, stream_, (std::uint64_t{1} << 40) + block);
}

void Plane::add_noise(float cell_x, float cell_y, float amplitude, PlateRng& rng) {
  const float step_x = 1 / std::max(cell_x, 1.0f), step_y = 1 / std::max(cell_y, 1.0f);
  const auto lattice_size = [&](float step) {
    return static_cast<int>(static_cast<float>(size_) * step) + 3;
  };
  const int across = lattice_size(step_x), down = lattice_size(step_y);
  const float offset_x = rng.unit(), offset_y = rng.unit();
  std::vector<float> lattice(static_cast<std::size_t>(across) * static_cast<std::size_t>(down));
  for (float& value : lattice) value = amplitude * (2 * rng.unit() - 1);
  // For each column, the lattice cell and the interpolation weight within it.
  std::vector<int> cell(static_cast<std::size_t>(size_));
  std::vector<float> share(static_cast<std::size_t>(size_)), line(static_cast<std::size_t>(across));
  for (int x = 0; x < size_; ++x) {
    const float at = static_cast<float>(x) * step_x + offset_x;
    const int whole = static_cast<int>(at);
    const float t = at - static_cast<float>(whole);
    cell[static_cast<std::size_t>(x)] = whole;
    share[static_cast<std::size_t>(x)] = t * t * (3 - 2 * t);
  }
  for (int y = 0; y < size_; ++y) {
    const float at = static_cast<float>(y) * step_y + offset_y;
    const int whole = static_cast<int>(at);
    const float t = at - static_cast<float>(whole), share_y = t * t * (3 - 2 * t);
    const float* upper = lattice.data() + static_cast<std::ptrdiff_t>(whole) * across;
    const float* lower = upper + across;
    for (int i = 0; i < across; ++i)
      line[static_cast<std::size_t>(i)] = upper[i] + (lower[i] - upper[i]) * share_y;
    float* to = row(y);
    for (int x = 0; x < size_; ++x) {
      const float* pair = line.data() + cell[static_cast<std::size_t>(x)];
      to[x] += pair[0] + (pair[1] - pair[0]) * share[static_cast<std::size_t>(x)];
    }
  }
}

Image shade(Canvas&& canvas, const Light& light, const PlateRng& rng) {
  const int size = canvas.size();
  Image image = make_image(size, size, 3);
  Plane* const planes[3] = {&canvas.red, &canvas.green, &canvas.blue};
  const float tint[3] = {light.color.red, light.color.green, light.color.blue};
  std::vector<float> factor(static_cast<std::size_t>(size)), shine(static_cast<std::size_t>(size));
  for (int y = 0; y < size; ++y) {
    light_row(canvas, light, y, factor.data(), shine.data());
    for (int c = 0; c < 3; ++c) {
      float* row = planes[c]->row(y);
      for (int x = 0; x < size; ++x) {
        const auto i = static_cast<std::size_t>(x);
        row[x] = (row[x] * factor[i] + shine[i]) * tint[c];
      }
    }
  }
  for (Plane* plane : planes) blur(*plane, light.blur);
  // One random word per pixel: a byte of brightness noise and one byte per color.
  std::vector<std::uint32_t> grains(static_cast<std::size_t>(size) + 3);
  const std::uint64_t blocks_per_row = (static_cast<std::uint64_t>(size) + 3) / 4;
  for (int y = 0; y < size; ++y) {
    for (std::uint64_t block = 0; block < blocks_per_row; ++block) {
      const Words4 words = rng.words(static_cast<std::uint64_t>(y) * blocks_per_row + block);
      std::copy(words.word, words.word + 4, grains.begin() + static_cast<std::ptrdiff_t>(4 * block));
    }
    for (int c = 0; c < 3; ++c) {
      const float* row = planes[c]->row(y);
      std::uint8_t* pixels = image.row(y) + c;
      for (int x = 0; x < size; ++x) {
        const std::uint32_t word = grains[static_cast<std::size_t>(x)];
        const auto bright = static_cast<float>(static_cast<int>(word & 0xFF) - 128);
        const auto tinge = static_cast<float>(static_cast<int>(word >> (8 + 8 * c) & 0xFF) - 128);
        const float value = row[x] * 255 + light.noise * (2 * bright + 0.8f * tinge);
        pixels[3 * x] = static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
      }
    }
  }
  return image;
}

}  // namespace tandem
