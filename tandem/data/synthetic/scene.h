// The description of a rendered scene: numbers only, sampled once (scene_sample.h) and then evaluated at
// every point (scene_shade.h). Scenes are about 2 × 2: (0, 0) is the center, y points down.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "tandem/data/synthetic/scene_math.h"

namespace tandem::scenes {

// What a scene shows. `kind_names` in scene_kinds.cpp follows this order.
enum class Kind : int {
  pattern,     // one random program of noise, waves, cells and folds
  leaves,      // many overlapping shapes of all sizes ("dead leaves")
  objects,     // a few lit objects made of parts, with specks on and around them
  grid,        // one shape in rows and columns
  strokes,     // long curved lines
  marks,       // strokes that form signs, in lines or alone
  branches,    // trees, cracks and rivers
  creatures,   // symmetric bodies with limbs
  blobs,       // drops that flow into each other
  network,     // nodes and edges
  structures,  // blocks with rows of openings
  landscape,   // ridges, haze and sky
  tiles,       // bricks, hexagons, scales and weaves with a relief
  room,        // the inside of a box in perspective
  solids,      // spheres, boxes and cylinders on a plane, with shadows
};
inline constexpr int kind_count = 15;

// A step of a pattern: moves the point (before `value_steps`) or adds to its value.
enum class Step : int {
  rotate,
  bend,
  warp,
  polar,
  fold,
  repeat,
  square,
  invert,
  twist,
  mirror,
  waves,  // the first of those that give a value
  rings,
  eggs,
  noise,
  ridges,
  cells,
  edges,
  trap,
  slope,
  blocks,
  disk,
};
inline constexpr int first_value_step = static_cast<int>(Step::waves), step_count = 21;

struct PatternStep {
  Step step = Step::rotate;
  int mode = 0;
  float a = 0, b = 0, c = 0, d = 0;
};

struct Pattern {
  static constexpr int max_steps = 12;

  int steps = 0;
  int post = 0;           // how the value becomes a place on the color ramp
  int cosine_colors = 0;  // else the ramp of `stops`
  std::uint32_t seed = 0;
  float offset_x = 0, offset_y = 0, cosine = 1, sine = 0;  // of the whole pattern, with its scale
  float gain = 1, bias = 0;
  PatternStep step[max_steps];
  Color stops[5];
  Color base, swing, phase;
};

enum class Shape : int {
  ellipse,
  box,
  superellipse,
  polygon,
  flower,
  bean,
  ring,
  wave,
  crescent,
  rough,
  capsule,  // a line from (−1, 0) to (1, 0), of two thicknesses
  arc,
  cluster,  // drops and limbs that flow into each other: members of the scene
};
inline constexpr int plain_shapes = 10;

enum class Fill : int {
  plain,
  gradient,
  radial,
  scene_pattern,
  own_pattern,
  noise,
  stripes,
  dots,
  tinted,
  rings
};
inline constexpr int fill_count = 10;

struct Part {
  float x = 0, y = 0, cosine = 1, sine = 0, inverse_width = 1, inverse_height = 1;
  float p0 = 0, p1 = 0, p2 = 0;
  float softness = 0.02f, alpha = 1;
  Color color = {}, second = {};
  float relief = 0, shine = 0, shadow = 0, texture = 1;
  Shape shape = Shape::ellipse;
  Fill fill = Fill::plain;
  int first_member = 0, members = 0;  // of a cluster
};

// A drop or a limb of a cluster, in the part's coordinates.
struct Member {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0, radius = 0;
};

// A solid on the plane y = 0; z is the distance from the camera.
struct Solid {
  int shape = 0;  // sphere, box, cylinder
  float x = 0, z = 0, size = 1, height = 1, cosine = 1, sine = 0;
  Color color = {};
  int pattern = 0;  // 0: plain
};

enum class Base : int { pattern, landscape, tiles, room, solids };

// What is known of a scene, as small numbers below attribute_sizes: its kind, its base, how many parts it
// has, the shape of all parts, whether they are lit and how many have a texture, and two numbers of its first
// pattern.
inline constexpr int attribute_count = 8;
inline constexpr int attribute_sizes[attribute_count] = {kind_count, 5, 6, plain_shapes + 1,
                                                         2,          4, 6, Pattern::max_steps + 1};

struct Scene {
  static constexpr int max_parts = 160, max_members = 48, max_solids = 5;
  static constexpr float max_reach = 1.7f;  // of a part and its shadow, in its own coordinates

  Kind kind = Kind::pattern;
  Base base = Base::pattern;
  int parts = 0, members = 0, solids = 0;
  std::uint32_t seed = 0;
  float light_x = 0, light_y = 0, light_z = 1;
  float vignette = 0, slope_x = 0, slope_y = 0;
  float p[12] = {};  // of the base
  int attribute[attribute_count] = {};
  Color palette[8];
  Pattern pattern[3];
  Solid solid[max_solids];
  Member member[max_members];
  Part part[max_parts];  // from front to back; last, because only the first `parts` are copied
};

// How a scene is looked at: a part of it, turned and bent, with a camera's errors.
struct View {
  float x = 0, y = 0, width = 1, height = 1, cosine = 1, sine = 0;
  float lens = 0, blur = 1;
  float gain = 1, contrast = 1, pivot = 0.5f, saturation = 1, hue_cosine = 1, hue_sine = 0, gamma = 1;
  Color tint = {1, 1, 1};
  float noise = 0;
  std::uint32_t seed = 0;
};

}  // namespace tandem::scenes
