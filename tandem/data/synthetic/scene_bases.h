// What is behind the parts of a scene: a pattern, a landscape, tiles, a room or solids on a plane.
#pragma once

#include "tandem/data/synthetic/scene.h"
#include "tandem/data/synthetic/scene_pattern.h"

namespace tandem::scenes {

constexpr Color landscape_at(const Scene& scene, float x, float y) {
  const float horizon = scene.p[0];
  float up = horizon - y, ripple = 1;
  const bool mirrored = scene.p[1] > 0 && up < 0;
  if (mirrored) {
    x += 0.03f * value_noise(x * 3, y * 40, scene.seed);
    up = -up;
    ripple = 0.75f;
  }
  const int ridges = static_cast<int>(scene.p[2]);
  for (int i = 0; i < ridges; ++i) {
    const float depth = static_cast<float>(i + 1) / static_cast<float>(ridges + 1);
    const float rise = scene.p[3] * depth - (scene.p[1] > 0 ? 0.0f : 0.9f * (1 - depth));
    const float skyline = rise + scene.p[4] * (0.4f + depth) *
                                     fractal_noise(x * scene.p[5] * (2 - depth) + static_cast<float>(17 * i),
                                                   0.37f * static_cast<float>(i),
                                                   scene.seed + static_cast<std::uint32_t>(31 * i),
                                                   scene.p[6], scene.p[7] > 0, 4);
    if (up > skyline) continue;
    const float texture =
        0.8f + 0.35f * value_noise(x * 14, up * 22, scene.seed + static_cast<std::uint32_t>(i));
    return scaled(mix(scaled(scene.palette[i % 4], texture), scene.palette[6], depth * depth * scene.p[8]),
                  ripple);
  }
  const float height = unit(up * 0.6f);
  Color sky = mix(scene.palette[6], scene.palette[7], height);
  const float clouds = fractal_noise(x * 1.3f + 5, up * 3, scene.seed + 7, 0.55f, false);
  sky = mix(sky, {0.95f, 0.95f, 0.95f}, unit(clouds * scene.p[9]));
  const float sun = length(x - scene.p[10], up - scene.p[11]);
  sky = mix(sky, {1, 0.95f, 0.8f}, smooth_step(0.16f, 0.13f, sun) + 0.4f * exponential(-4 * sun));
  return scaled(unit(sky), ripple);
}

struct TilePlace {
  int i = 0, j = 0;
  float u = 0, v = 0;  // in the tile, −1 to 1
  float edge = 1;      // 0 at the edge, 1 in the middle
};

constexpr TilePlace tile_at(int layout, float x, float y) {
  TilePlace at;
  if (layout == 1 || layout == 4) {  // bricks; scales, which are rows of overlapping disks
    at.j = floor_of(y);
    x = x * (layout == 1 ? 0.5f : 1.0f) + (at.j & 1 ? 0.5f : 0.0f);
  } else if (layout == 2) {  // hexagons: the nearer of two lattices
    const float height = 1.7320508f;
    const float ax = x - static_cast<float>(round_of(x)),
                ay = y - height * static_cast<float>(round_of(y / height));
    const float bx = x - 0.5f - static_cast<float>(round_of(x - 0.5f)),
                by = y - height / 2 - height * static_cast<float>(round_of((y - height / 2) / height));
    const bool first = ax * ax + ay * ay < bx * bx + by * by;
    at.u = (first ? ax : bx) * 2;
    at.v = (first ? ay : by) * 2;
    at.i = round_of((x - at.u / 2) * 2);
    at.j = round_of((y - at.v / 2) * 2);
    const float a = magnitude(at.u), b = magnitude(at.v);
    at.edge = 1 - larger(a, a * 0.5f + b * 0.8660254f);
    return at;
  } else if (layout == 3) {  // a weave: every other strip runs the other way
    at.i = floor_of(x);
    at.j = floor_of(y);
    const bool across = ((at.i + at.j) & 1) != 0;
    at.u = 2 * (x - static_cast<float>(at.i)) - 1;
    at.v = 2 * (y - static_cast<float>(at.j)) - 1;
    if (across) {
      const float u = at.u;
      at.u = at.v;
      at.v = u;
      at.i = at.j;
      at.j = -1;
    } else {
      at.j = -2;
    }
    at.edge = 1 - magnitude(at.v);
    return at;
  } else {
    at.j = floor_of(y);
  }
  at.i = floor_of(x);
  at.u = 2 * (x - static_cast<float>(at.i)) - 1;
  at.v = 2 * (y - static_cast<float>(at.j)) - 1;
  at.edge = layout == 4 ? 1 - length(at.u, 0.5f + 0.5f * at.v) : 1 - larger(magnitude(at.u), magnitude(at.v));
  return at;
}

constexpr Color tiles_at(const Scene& scene, float x, float y) {
  const float px = (scene.p[2] * x - scene.p[3] * y) * scene.p[1],
              py = (scene.p[3] * x + scene.p[2] * y) * scene.p[1];
  const float bent = scene.p[8] * value_noise(px * 0.4f, py * 0.4f, scene.seed);
  const TilePlace at = tile_at(static_cast<int>(scene.p[0]), px + bent, py - bent);
  const std::uint32_t id = hash(at.i, at.j, scene.seed);
  const int colors = static_cast<int>(scene.p[4]);
  Color color = scene.palette[to_below(id, static_cast<std::uint32_t>(colors))];
  const float own = 0.85f + 0.3f * static_cast<float>(id & 255) / 255;
  if (scene.p[5] > 0)
    color = mix(color, color_at(scene.pattern[1], px * 0.6f + static_cast<float>(id & 15), py * 0.6f),
                scene.p[5]);
  const float gap = scene.p[6];
  if (at.edge < gap) return scaled(scene.palette[7], 0.7f + 0.2f * value_noise(px * 9, py * 9, scene.seed));
  const float bevel = smooth_step(gap + 0.25f, gap, at.edge) * scene.p[7];
  const float round = static_cast<int>(scene.p[0]) == 3 ? square_root(larger(1 - at.v * at.v, 0)) : 1.0f;
  const float light =
      own * (0.6f + 0.4f * round) * (1 + bevel * (at.u * scene.light_x + at.v * scene.light_y));
  return unit(scaled(color, light));
}

// A point of space seen through (x, y).
struct Ray {
  float x, y, z;
};

constexpr Color room_at(const Scene& scene, float x, float y) {
  const float vx = x * scene.p[0], vy = y * scene.p[0];
  // Turned by the yaw and then the pitch of the camera.
  const float z1 = scene.p[2] - vy * scene.p[3], y1 = vy * scene.p[2] + scene.p[3];
  const Ray ray{scene.p[4] * vx + scene.p[5] * z1, y1, scene.p[4] * z1 - scene.p[5] * vx};
  const float half_width = scene.p[6], half_height = scene.p[7], depth = scene.p[8];
  const float tx = half_width / (magnitude(ray.x) + 1e-6f), ty = half_height / (magnitude(ray.y) + 1e-6f),
              tz = (ray.z > 0 ? depth : 1.0f) / (magnitude(ray.z) + 1e-6f);
  const float t = smaller(tx, smaller(ty, tz));
  const float hx = ray.x * t, hy = ray.y * t, hz = ray.z * t;
  const bool is_floor = ty <= tx && ty <= tz;
  float u = hx, v = hz;
  float light = 1;
  if (is_floor) {
    light = ray.y > 0 ? 0.8f : 1.05f;
  } else if (tx <= tz) {
    u = hz;
    v = hy;
    light = ray.x > 0 ? 0.75f + 0.2f * scene.light_x : 0.75f - 0.2f * scene.light_x;
  } else {
    v = hy;
    light = 0.9f;
  }
  const float corner = smaller(larger(half_width - magnitude(hx), is_floor || tx > tz ? 0.0f : 9.0f),
                               is_floor ? 9.0f : half_height - magnitude(hy));
  light *= 0.65f + 0.35f * smooth_step(0, 0.5f, corner);
  light *= 1.1f - 0.4f * unit(hz / (depth + 1));
  const Color color =
      is_floor ? (ray.y > 0 ? color_at(scene.pattern[0], u, v) : scene.palette[5])
               : mix(color_at(scene.pattern[1], u, v), scene.palette[tx <= tz ? 1 : 2], scene.p[9]);
  return unit(scaled(color, light));
}

// The distance along a ray to a solid, or a large number; and the normal there.
struct Hit {
  float t = 1e9f;
  float nx = 0, ny = 1, nz = 0;
};

constexpr Hit hit_of(const Solid& solid, const Ray& from, const Ray& ray) {
  Hit hit;
  const float ox = from.x - solid.x, oz = from.z - solid.z;
  if (solid.shape == 0) {
    const float oy = from.y - solid.size;
    const float a = ray.x * ray.x + ray.y * ray.y + ray.z * ray.z, b = ox * ray.x + oy * ray.y + oz * ray.z;
    const float c = ox * ox + oy * oy + oz * oz - solid.size * solid.size, d = b * b - a * c;
    if (d < 0) return hit;
    const float t = (-b - square_root(d)) / a;
    if (t < 1e-3f) return hit;
    hit.t = t;
    hit.nx = (ox + t * ray.x) / solid.size;
    hit.ny = (oy + t * ray.y) / solid.size;
    hit.nz = (oz + t * ray.z) / solid.size;
    return hit;
  }
  if (solid.shape == 1) {  // turned about the vertical
    const float px = solid.cosine * ox - solid.sine * oz, pz = solid.sine * ox + solid.cosine * oz,
                py = from.y - solid.height;
    const float dx = solid.cosine * ray.x - solid.sine * ray.z,
                dz = solid.sine * ray.x + solid.cosine * ray.z;
    const auto inverse = [](float v) { return 1 / (magnitude(v) < 1e-6f ? 1e-6f : v); };
    const float ix = inverse(dx), iy = inverse(ray.y), iz = inverse(dz);
    const float sx = solid.size * magnitude(ix), sy = solid.height * magnitude(iy),
                sz = solid.size * magnitude(iz);
    const float ax = -px * ix - sx, ay = -py * iy - sy, az = -pz * iz - sz;
    const float near = larger(ax, larger(ay, az));
    const float far = smaller(-px * ix + sx, smaller(-py * iy + sy, -pz * iz + sz));
    if (near > far || near < 1e-3f) return hit;
    hit.t = near;
    float lx = 0, lz = 0;
    hit.ny = 0;
    if (near == ax)
      lx = dx < 0 ? 1.0f : -1.0f;
    else if (near == ay)
      hit.ny = ray.y < 0 ? 1.0f : -1.0f;
    else
      lz = dz < 0 ? 1.0f : -1.0f;
    hit.nx = solid.cosine * lx + solid.sine * lz;
    hit.nz = solid.cosine * lz - solid.sine * lx;
    return hit;
  }
  const float a = ray.x * ray.x + ray.z * ray.z + 1e-9f, b = ox * ray.x + oz * ray.z;
  const float c = ox * ox + oz * oz - solid.size * solid.size, d = b * b - a * c;
  if (d < 0) return hit;
  const float top = 2 * solid.height, t = (-b - square_root(d)) / a, y = from.y + t * ray.y;
  if (t > 1e-3f && y > 0 && y < top) {
    hit.t = t;
    hit.nx = (ox + t * ray.x) / solid.size;
    hit.ny = 0;
    hit.nz = (oz + t * ray.z) / solid.size;
    return hit;
  }
  if (ray.y < -1e-6f && from.y > top) {  // the lid
    const float lid = (top - from.y) / ray.y, x = ox + lid * ray.x, z = oz + lid * ray.z;
    if (x * x + z * z < solid.size * solid.size) hit.t = lid;
  }
  return hit;
}

constexpr Color solids_at(const Scene& scene, float x, float y) {
  const Ray camera{0, scene.p[0], -scene.p[1]};
  const float down = scene.p[3] + y * scene.p[2], forward = 1 - y * scene.p[2] * scene.p[3];
  const Ray ray{x * scene.p[2], -down, forward};
  int found = -1;
  Hit hit;
  for (int i = 0; i < scene.solids; ++i) {
    const Hit other = hit_of(scene.solid[i], camera, ray);
    if (other.t < hit.t) {
      hit = other;
      found = i;
    }
  }
  Color color;
  if (found < 0) {
    if (ray.y > -0.02f) return mix(scene.palette[6], scene.palette[7], unit(ray.y * 1.5f));
    hit.t = camera.y / -ray.y;
  }
  const Ray at{camera.x + hit.t * ray.x, camera.y + hit.t * ray.y, camera.z + hit.t * ray.z};
  if (found < 0) {
    hit.nx = hit.nz = 0;
    hit.ny = 1;
    color = color_at(scene.pattern[0], at.x, at.z);
  } else {
    const Solid& solid = scene.solid[found];
    color = solid.pattern == 0
                ? solid.color
                : mix(solid.color,
                      color_at(scene.pattern[solid.pattern], at.x - solid.x + at.z - solid.z, at.y), 0.75f);
  }
  const Ray light{scene.light_x, scene.light_z, -scene.light_y};
  float lit = larger(hit.nx * light.x + hit.ny * light.y + hit.nz * light.z, 0);
  const float facing = lit;
  const Ray start{at.x + 0.01f * hit.nx, at.y + 0.01f * hit.ny, at.z + 0.01f * hit.nz};
  for (int i = 0; i < scene.solids && lit > 0; ++i)
    if (i != found && hit_of(scene.solid[i], start, light).t < 1e8f) lit = 0;
  const float shine = found >= 0 && lit > 0 ? scene.p[4] * power(facing, 30) : 0.0f;
  const float haze = found < 0 ? unit(hit.t * 0.06f) : 0.0f;
  const float k = scene.p[5] + (1.1f - scene.p[5]) * lit;
  return unit(
      mix(Color{color.r * k + shine, color.g * k + shine, color.b * k + shine}, scene.palette[6], haze));
}

constexpr Color base_at(const Scene& scene, float x, float y) {
  switch (scene.base) {
    case Base::landscape:
      return landscape_at(scene, x, y);
    case Base::tiles:
      return tiles_at(scene, x, y);
    case Base::room:
      return room_at(scene, x, y);
    case Base::solids:
      return solids_at(scene, x, y);
    default:
      return color_at(scene.pattern[0], x, y);
  }
}

}  // namespace tandem::scenes
