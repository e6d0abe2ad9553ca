// Samples the parts of scenes.
#pragma once

#include "tandem/data/synthetic/scene.h"

namespace tandem::scenes {

// What the parts of a scene have in common.
struct Style {
  float textured = 0;  // share of parts with a texture
  int shape = -1;      // of all parts, if not −1
  bool lit = false;
  float dome = 0, shine = 0, shadow = 0;
};

// Samples single parts and groups of them.
class PartSampler {
 public:
  constexpr PartSampler(Scene& scene, const Random& random) : scene_(scene), random_(random) {}

  constexpr void sample_style() {
    Random& r = random_;
    style_ = {.textured = r.uniform(),
              .shape = r.chance(0.4f) ? r.below(plain_shapes) : -1,
              .lit = r.chance(0.6f),
              .dome = r.uniform(),
              .shine = r.chance(0.5f) ? 0.0f : r.uniform(),
              .shadow = r.chance(0.5f) ? r.uniform(0.2f, 0.8f) : 0.0f};
  }
  constexpr const Style& style() const { return style_; }

 protected:
  constexpr bool is_full() const { return scene_.parts >= Scene::max_parts; }
  constexpr Color color() { return scene_.palette[random_.below(8)]; }
  constexpr Shape any_shape() {
    return static_cast<Shape>(style_.shape >= 0 ? style_.shape : random_.below(plain_shapes));
  }
  constexpr Fill any_fill() {
    return random_.chance(style_.textured) ? static_cast<Fill>(1 + random_.below(fill_count - 1))
                                           : Fill::plain;
  }
  constexpr void turn(Part& part, float angle) {
    part.cosine = cosine(angle);
    part.sine = sine(angle);
  }
  constexpr void sample_shape(Part& part) {
    Random& r = random_;
    switch (part.shape) {
      case Shape::superellipse:
        part.p0 = r.scale(0.7f, 6);
        break;
      case Shape::polygon:
        part.p0 = static_cast<float>(3 + r.below(6));
        break;
      case Shape::flower:
        part.p0 = static_cast<float>(3 + r.below(7));
        part.p1 = r.uniform(0.1f, 0.6f);
        break;
      case Shape::bean:
        part.p0 = r.uniform(0, tau);
        part.p1 = r.uniform(0, 0.35f);
        part.p2 = r.uniform(0, 0.25f);
        break;
      case Shape::ring:
        part.p2 = r.uniform(0.03f, 0.3f);
        break;
      case Shape::wave:
        part.p0 = r.uniform(0, 0.5f);
        part.p1 = r.uniform(1, 6);
        part.p2 = r.uniform(0.03f, 0.25f);
        break;
      case Shape::crescent:
        part.p0 = r.uniform(0.2f, 0.9f);
        part.p1 = r.uniform(0.6f, 1);
        break;
      case Shape::rough:
        part.p0 = r.uniform(0, 50);
        part.p1 = r.uniform(1, 4);
        part.p2 = r.uniform(0.2f, 0.6f);
        break;
      default:
        break;
    }
  }

  constexpr Part sample_part(float x, float y, float radius, Shape shape, Fill fill, bool opaque) {
    Random& r = random_;
    Part part{.x = x, .y = y, .shape = shape, .fill = fill};
    turn(part, r.uniform(0, tau));
    const float aspect = r.chance(0.35f) ? 1.0f : r.scale(0.4f, 1);
    part.inverse_width = 1 / radius;
    part.inverse_height = 1 / (radius * aspect);
    sample_shape(part);
    part.softness = r.chance(0.7f) ? 0.02f : r.scale(0.05f, 0.6f);
    part.alpha = opaque || r.chance(0.75f) ? 1.0f : r.uniform(0.2f, 0.9f);
    part.color = color();
    part.color = unit(scaled(part.color, r.uniform(0.75f, 1.25f)));
    part.second = color();
    part.texture = r.scale(3, 20) * (fill == Fill::noise ? 0.5f / radius : 1.0f);
    return part;
  }
  constexpr void add(const Part& part) {
    if (!is_full()) scene_.part[scene_.parts++] = part;
  }
  constexpr void give_relief(Part& part) {
    if (!style_.lit) return;
    part.relief = style_.dome < 0.4f   ? random_.uniform(0.3f, 1)
                  : style_.dome < 0.9f ? -random_.uniform(0.2f, 0.8f)
                                       : 0.0f;
    part.shine = style_.shine;
  }

  // A line between two points of two thicknesses.
  constexpr Part line(float x0, float y0, float x1, float y1, float start, float end, const Color& ink) {
    const float half = larger(0.5f * length(x1 - x0, y1 - y0), 1e-4f);
    // The part reaches beyond its ends by its thickness: coordinates are those of the half length.
    Part part{.x = 0.5f * (x0 + x1), .y = 0.5f * (y0 + y1), .shape = Shape::capsule};
    part.cosine = (x1 - x0) / (2 * half);
    part.sine = (y1 - y0) / (2 * half);
    part.inverse_width = part.inverse_height = 1 / half;
    part.p0 = smaller(start / half, 0.65f);
    part.p1 = smaller(end / half, 0.65f);
    part.softness = 0.01f / half;
    part.color = ink;
    part.second = scaled(ink, 0.7f);
    return part;
  }

  // Small parts around a point, often of one shape and color.
  constexpr void specks(float x, float y, float spread, int count, float size) {
    Random& r = random_;
    const int shape = r.chance(0.5f) ? r.below(plain_shapes) : -1;
    const Fill fill = r.chance(0.6f) ? Fill::plain : static_cast<Fill>(r.below(fill_count));
    const bool one_color = r.chance(0.6f);
    const float alpha = r.chance(0.6f) ? 1.0f : r.uniform(0.2f, 0.8f);
    Color first;
    float softness = 0;
    for (int i = 0; i < count; ++i) {
      const float px = x + spread * r.normal(), py = y + spread * r.normal(),
                  radius = size * r.scale(0.4f, 2);
      const Shape own = static_cast<Shape>(shape >= 0 ? shape : r.below(plain_shapes));
      Part part = sample_part(px, py, radius, own, fill, false);
      part.alpha *= alpha;
      if (i == 0) {
        first = part.color;
        softness = part.softness;
      } else if (one_color) {
        part.color = unit(scaled(first, r.uniform(0.8f, 1.2f)));
        part.softness = softness;
      }
      add(part);
    }
  }

  constexpr void few_specks(float spread, int count, float low, float high) {
    specks(0, 0, spread, count, random_.scale(low, high));
  }

  constexpr int add_member(const Member& member) {
    if (scene_.members < Scene::max_members) scene_.member[scene_.members++] = member;
    return scene_.members;
  }
  constexpr Part cluster(float x, float y, float radius, float angle, int first) {
    Part part = sample_part(x, y, radius, Shape::cluster, any_fill(), true);
    turn(part, angle);
    part.inverse_height = part.inverse_width;
    part.p0 = random_.uniform(4, 12);
    part.first_member = first;
    part.members = scene_.members - first;
    give_relief(part);
    part.shadow = style_.shadow;
    return part;
  }

  Scene& scene_;
  Random random_;
  Style style_;
};

}  // namespace tandem::scenes
