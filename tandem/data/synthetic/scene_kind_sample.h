// Samples what the kinds of scenes show.
#pragma once

#include "tandem/data/synthetic/scene_part_sample.h"

namespace tandem::scenes {

// The parts of each kind of scene.
class KindSampler : public PartSampler {
 public:
  using PartSampler::PartSampler;

  constexpr void sample_parts() {
    switch (scene_.kind) {
      case Kind::leaves:
        return leaves();
      case Kind::objects:
        return objects();
      case Kind::grid:
        return grid();
      case Kind::strokes:
        return strokes();
      case Kind::marks:
        return marks();
      case Kind::branches:
        return branches();
      case Kind::creatures:
        return creatures();
      case Kind::blobs:
        return blobs();
      case Kind::network:
        return network();
      case Kind::structures:
        return structures();
      case Kind::landscape:
      case Kind::tiles:
      case Kind::room:
        if (random_.chance(0.4f)) few_specks(0.9f, 3 + random_.below(12), 0.03f, 0.25f);
        return;
      default:
        return;
    }
  }

 private:
  constexpr void leaves() {
    Random& r = random_;
    const int count = 40 + r.below(Scene::max_parts - 40);
    const float low = r.scale(0.02f, 0.12f), high = r.scale(0.3f, 1), exponent = r.uniform(0.8f, 2.2f);
    const float a = power(low, -exponent), b = power(high, -exponent);
    while (scene_.parts < count) {
      const float radius = power(a + (b - a) * r.uniform(), -1 / exponent);
      const float x = r.uniform(-1.2f, 1.2f), y = r.uniform(-1.2f, 1.2f);
      const Shape shape = any_shape();
      add(sample_part(x, y, radius, shape, any_fill(), true));
    }
    // Half of the large ones go to the back.
    for (int i = 1; i < scene_.parts; ++i) {
      const int j = r.below(i + 1);
      if (!r.chance(0.5f) || scene_.part[j].inverse_width >= scene_.part[i].inverse_width) continue;
      const Part larger_part = scene_.part[j];
      scene_.part[j] = scene_.part[i];
      scene_.part[i] = larger_part;
    }
  }

  constexpr void objects() {
    Random& r = random_;
    const int count = r.chance(0.5f) ? 1 : 1 + r.below(5);
    float x[5] = {}, y[5] = {}, radius[5] = {};
    for (int i = 0; i < count; ++i) {
      radius[i] = count == 1 ? r.uniform(0.35f, 0.9f) : r.scale(0.15f, 0.6f);
      x[i] = count == 1 ? 0.15f * r.normal() : r.uniform(-0.8f, 0.8f);
      y[i] = count == 1 ? 0.15f * r.normal() : r.uniform(-0.8f, 0.8f);
    }
    if (r.chance(0.6f)) {
      const int all = static_cast<int>(r.scale(3, 90));
      const float size = r.scale(0.015f, 0.12f), spread = r.uniform(0.2f, 0.7f);
      for (int i = 0; i < count; ++i) specks(x[i], y[i], spread * radius[i], all / count + 1, size);
    }
    for (int i = 0; i < count && scene_.parts < Scene::max_parts - 3; ++i) {
      const Shape shape = style_.shape < 0 && r.chance(0.4f) ? Shape::ellipse : any_shape();
      const int inner = r.below(3);
      Part first;
      for (int k = inner; k >= 0; --k) {
        const float share = k == 0 ? 1.0f : r.uniform(0.3f, 0.9f);
        const Fill fill =
            r.chance(0.5f * style_.textured + 0.3f) ? static_cast<Fill>(r.below(fill_count)) : Fill::plain;
        Part part = sample_part(x[i], y[i], radius[i] * share, shape, fill, k == 0);
        if (k == inner) {
          first = part;
        } else {  // parts of an object have its outline
          part.cosine = first.cosine;
          part.sine = first.sine;
          part.inverse_height = part.inverse_width * first.inverse_height / first.inverse_width;
          part.p0 = first.p0;
          part.p1 = first.p1;
          part.p2 = first.p2;
          if (r.chance(0.4f)) part.color = first.color;
        }
        give_relief(part);
        if (k == 0) part.shadow = style_.shadow;
        add(part);
      }
    }
  }

  constexpr void grid() {
    Random& r = random_;
    const int side = 2 + r.below(7);
    const float step = 2.2f / static_cast<float>(side), jitter = r.chance(0.5f) ? 0.0f : 0.3f * r.uniform();
    const float radius = step * r.uniform(0.25f, 0.6f), kept = r.chance(0.5f) ? 1.0f : r.uniform(0.5f, 1);
    const auto shape = static_cast<Shape>(r.below(plain_shapes));
    const auto fill = static_cast<Fill>(r.below(fill_count));
    Part first;
    for (int i = 0; i < side * side; ++i) {
      const float x = (static_cast<float>(i % side) + 0.5f) * step - 1.1f + jitter * step * r.normal(),
                  y = (static_cast<float>(i / side) + 0.5f) * step - 1.1f + jitter * step * r.normal();
      const bool is_kept = r.chance(kept);
      Part part = sample_part(x, y, radius, shape, fill, true);
      if (i == 0) {
        first = part;
      } else if (style_.shape >= 0) {
        part = first;
        part.x = x;
        part.y = y;
      }
      if (style_.lit) part.relief = style_.dome < 0.6f ? 0.8f : -0.5f;
      if (style_.lit) part.shine = style_.shine;
      part.shadow = style_.shadow;
      if (is_kept) add(part);
    }
  }

  constexpr void strokes() {
    Random& r = random_;
    const int count = 5 + r.below(60);
    const float radius = r.scale(0.2f, 1.2f), width = r.scale(0.01f, 0.12f), direction = r.uniform(0, tau);
    const float spread = r.chance(0.5f) ? 0.15f : 3.0f;
    for (int i = 0; i < count; ++i) {
      const float x = r.uniform(-1.2f, 1.2f), y = r.uniform(-1.2f, 1.2f), size = radius * r.scale(0.6f, 1.5f);
      const Fill fill =
          r.chance(0.3f * style_.textured) ? static_cast<Fill>(r.below(fill_count)) : Fill::plain;
      Part part = sample_part(x, y, size, Shape::wave, fill, false);
      turn(part, direction + spread * r.normal());
      part.p2 = width * r.scale(0.5f, 2);
      part.inverse_height = part.inverse_width;
      add(part);
    }
  }

  // Signs of a made-up script: each is a few lines and arcs between points of a 3 × 3 grid.
  constexpr void marks() {
    Random& r = random_;
    constexpr int max_strokes = 5;
    struct Stroke {
      float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
      bool arc = false;
    };
    struct Sign {
      Stroke stroke[max_strokes];
      int count = 0;
    };
    const int signs = 1 + r.below(8), rows = r.chance(0.4f) ? 1 : 1 + r.below(5);
    Sign sign[8];
    const float bent = r.chance(0.5f) ? 0.0f : r.uniform(0.2f, 0.8f);
    for (int i = 0; i < signs; ++i) {
      sign[i].count = 1 + r.below(max_strokes);
      int at = r.below(9);
      for (int k = 0; k < sign[i].count; ++k) {
        int next = r.below(9);
        if (next == at) next = (next + 1 + r.below(8)) % 9;
        const auto coordinate = [](int cell) { return static_cast<float>(cell) - 1; };
        sign[i].stroke[k] = {coordinate(at % 3), coordinate(at / 3), coordinate(next % 3),
                             coordinate(next / 3), r.chance(bent)};
        at = r.chance(0.7f) ? next : r.below(9);
      }
    }
    const float size = (rows == 1 ? r.uniform(0.25f, 0.75f) : 0.75f / static_cast<float>(rows)),
                slant = 0.25f * r.normal();
    const float thickness = size * r.scale(0.06f, 0.3f), aspect = r.uniform(0.5f, 1),
                wobble = 0.12f * r.uniform();
    const int columns = rows == 1 && size > 0.5f ? 1 : static_cast<int>(1 / (size * aspect));
    const Color ink = color();
    const bool one_ink = r.chance(0.7f);
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column) {
        const float cx = (static_cast<float>(column) - 0.5f * static_cast<float>(columns - 1)) * size *
                         aspect * 2.3f,
                    cy = (static_cast<float>(row) - 0.5f * static_cast<float>(rows - 1)) * size * 2.6f;
        const Sign& one = sign[r.below(signs)];
        if (r.chance(0.08f)) continue;
        const Color own = one_ink ? ink : color();
        const auto place = [&](float u, float v, Point& to) {
          to.x = cx + size * (aspect * u + slant * v) + size * wobble * r.normal();
          to.y = cy + size * v + size * wobble * r.normal();
        };
        for (int k = 0; k < one.count && !is_full(); ++k) {
          const Stroke& s = one.stroke[k];
          Point from, to;
          place(s.x0, s.y0, from);
          place(s.x1, s.y1, to);
          const float start = thickness * r.uniform(0.7f, 1.3f), end = thickness * r.uniform(0.7f, 1.3f);
          Part part = line(from.x, from.y, to.x, to.y, start, end, own);
          if (s.arc) {  // half an ellipse over the line
            part.shape = Shape::arc;
            turn(part, angle_of(to.y - from.y, to.x - from.x) + (r.chance(0.5f) ? pi / 2 : -pi / 2));
            part.p0 = pi / 2;
            part.p1 = smaller(thickness * part.inverse_width, 0.5f);
          }
          if (style_.lit) part.shadow = 0.5f * style_.shadow;
          add(part);
        }
      }
  }

  constexpr void branches() {
    Random& r = random_;
    struct Tip {
      float x = 0, y = 0, angle = 0, length = 0, width = 0;
      int depth = 0;
    };
    Tip open[Scene::max_parts];
    int first = 0, count = 0;
    const bool cracks = r.chance(0.35f);
    const int roots = cracks ? 1 + r.below(4) : 1 + r.below(2);
    const float length0 = r.uniform(0.25f, 0.6f), width0 = r.scale(0.012f, 0.09f),
                spread = r.uniform(0.2f, 0.9f), shrink = r.uniform(0.6f, 0.88f),
                wander = r.uniform(0.05f, 0.4f);
    for (int i = 0; i < roots; ++i)
      open[count++] =
          cracks ? Tip{r.uniform(-0.6f, 0.6f), r.uniform(-0.6f, 0.6f), r.uniform(0, tau), length0, width0, 0}
                 : Tip{r.uniform(-0.5f, 0.5f), 1.1f, -pi / 2 + 0.2f * r.normal(), length0, width0, 0};
    const Color ink = color(), leaf = color();
    const float foliage = cracks || r.chance(0.4f) ? 0.0f : r.uniform(0.03f, 0.14f);
    const auto leaf_shape = static_cast<Shape>(r.below(plain_shapes));
    constexpr int max_pieces = 90;
    while (first < count && first < max_pieces) {
      const Tip tip = open[first++];
      const float x = tip.x + tip.length * cosine(tip.angle), y = tip.y + tip.length * sine(tip.angle);
      if (foliage > 0 && tip.depth >= 3) {
        Part part = sample_part(x, y, foliage * r.scale(0.5f, 1.6f), leaf_shape, Fill::plain, true);
        part.color = unit(scaled(leaf, r.uniform(0.7f, 1.3f)));
        add(part);
      }
      const int children = tip.depth >= 7 || tip.length < 0.03f ? 0 : 1 + r.below(3);
      for (int i = 0; i < children && count < max_pieces; ++i) {
        const float side = static_cast<float>(i) - 0.5f * static_cast<float>(children - 1);
        open[count++] = {x,
                         y,
                         tip.angle + wander * r.normal() + spread * side,
                         tip.length * shrink * r.uniform(0.8f, 1.15f),
                         tip.width * shrink,
                         tip.depth + 1};
      }
    }
    for (int i = 0; i < first; ++i) {  // behind the leaves
      const Tip& tip = open[i];
      add(line(tip.x, tip.y, tip.x + tip.length * cosine(tip.angle), tip.y + tip.length * sine(tip.angle),
               tip.width, tip.width * shrink, unit(scaled(ink, r.uniform(0.85f, 1.15f)))));
    }
  }

  // A body along the x axis, the same on both sides of it.
  constexpr void creatures() {
    Random& r = random_;
    const int count = r.chance(0.6f) ? 1 : 2 + r.below(2);
    for (int c = 0; c < count; ++c) {
      const float size = count == 1 ? r.uniform(0.5f, 0.9f) : r.uniform(0.25f, 0.5f);
      const float x = count == 1 ? 0.15f * r.normal() : r.uniform(-0.7f, 0.7f),
                  y = count == 1 ? 0.15f * r.normal() : r.uniform(-0.7f, 0.7f);
      const float angle = r.chance(0.5f) ? 0.3f * r.normal() : r.uniform(0, tau);
      const int first = scene_.members;
      const float body = r.uniform(0.12f, 0.4f), span = r.uniform(0.4f, 0.75f),
                  head = body * r.uniform(0.5f, 1.2f);
      add_member({-span, 0, span * 0.5f, 0, body});
      add_member({span * 0.8f, 0, span, 0, head});
      const int pairs = r.below(5);
      const float reach = r.uniform(0.3f, 0.9f), lean = 0.4f * r.normal(), thin = r.uniform(0.04f, 0.14f);
      for (int i = 0; i < pairs; ++i) {
        const float at = -span + 1.4f * span * (static_cast<float>(i) + 0.5f) / static_cast<float>(pairs);
        const float out = body + reach * r.uniform(0.6f, 1), end = at + lean * reach;
        add_member({at, 0, end, out, thin});
        add_member({at, 0, end, -out, thin});
      }
      if (r.chance(0.5f)) add_member({-span, 0, -1.1f, 0.3f * r.normal(), thin});
      const float c0 = cosine(angle), s0 = sine(angle);
      const auto dot = [&](float u, float v, float radius, const Color& own) {
        Part part = sample_part(x + size * (c0 * u - s0 * v), y + size * (s0 * u + c0 * v), size * radius,
                                Shape::ellipse, Fill::plain, true);
        part.color = own;
        part.softness = 0.05f;
        add(part);
      };
      if (r.chance(0.7f)) {
        const float eye = head * r.uniform(0.15f, 0.35f);
        const Color iris = color();
        for (const float side : {-0.5f, 0.5f}) {
          dot(span + 0.3f * head, side * head, eye * 0.5f, {0.05f, 0.05f, 0.05f});
          dot(span + 0.3f * head, side * head, eye, iris);
        }
      }
      add(cluster(x, y, size, angle, first));
    }
  }

  constexpr void blobs() {
    Random& r = random_;
    const int count = 1 + r.below(5);
    for (int c = 0; c < count; ++c) {
      const int first = scene_.members, drops = 2 + r.below(8);
      const float size = r.uniform(0.1f, 0.4f), chain = r.chance(0.3f) ? 1.0f : 0.0f;
      for (int i = 0; i < drops; ++i) {
        const float x = 0.5f * r.normal(), y = 0.5f * r.normal();
        add_member(
            {x, y, x + chain * 0.4f * r.normal(), y + chain * 0.4f * r.normal(), size * r.scale(0.5f, 1.4f)});
      }
      if (scene_.members == first) break;
      const float x = r.uniform(-0.7f, 0.7f), y = r.uniform(-0.7f, 0.7f), radius = r.scale(0.25f, 0.8f);
      add(cluster(x, y, radius, r.uniform(0, tau), first));
    }
    if (r.chance(0.5f)) few_specks(0.7f, 3 + r.below(30), 0.02f, 0.1f);
  }

  constexpr void network() {
    Random& r = random_;
    constexpr int max_nodes = 24;
    const int nodes = 4 + r.below(max_nodes - 4);
    float x[max_nodes] = {}, y[max_nodes] = {};
    const bool ring = r.chance(0.3f);
    const float size = r.scale(0.025f, 0.12f), width = size * r.uniform(0.12f, 0.4f);
    const Color edge = color();
    for (int i = 0; i < nodes; ++i) {
      const float a = tau * static_cast<float>(i) / static_cast<float>(nodes);
      x[i] = ring ? 0.8f * cosine(a) + 0.05f * r.normal() : r.uniform(-1, 1);
      y[i] = ring ? 0.8f * sine(a) + 0.05f * r.normal() : r.uniform(-1, 1);
    }
    const Shape shape = any_shape();
    const bool one_color = r.chance(0.5f);
    const Color own = color();
    for (int i = 0; i < nodes; ++i) {
      const float radius = size * r.scale(0.7f, 1.5f);
      Part part = sample_part(x[i], y[i], radius, shape, any_fill(), true);
      if (one_color) part.color = own;
      give_relief(part);
      part.shadow = style_.shadow;
      add(part);
    }
    const int links = 1 + r.below(3);
    for (int i = 0; i < nodes; ++i)
      for (int k = 0; k < links; ++k) {
        const int j = r.chance(0.6f) ? (i + 1 + k) % nodes : r.below(nodes);
        if (j != i) add(line(x[i], y[i], x[j], y[j], width, width, edge));
      }
  }

  constexpr void structures() {
    Random& r = random_;
    const int count = 1 + r.below(4);
    for (int c = 0; c < count; ++c) {
      const float width = count == 1 ? r.uniform(0.4f, 0.9f) : r.uniform(0.2f, 0.5f),
                  height = r.uniform(0.4f, 1.2f);
      const float x = count == 1 ? 0.1f * r.normal() : r.uniform(-0.9f, 0.9f), bottom = r.uniform(0.6f, 1.2f),
                  y = bottom - height;
      const int columns = 1 + r.below(6), rows = 1 + r.below(7);
      const float open_x = width / static_cast<float>(columns) * r.uniform(0.25f, 0.75f),
                  open_y = height / static_cast<float>(rows) * r.uniform(0.25f, 0.75f);
      const Color opening = color(), lit = color();
      const Shape shape = r.chance(0.7f) ? Shape::box : any_shape();
      const auto upright = [&](Part& part, float half_width, float half_height) {
        turn(part, 0);
        part.inverse_width = 0.85f / half_width;
        part.inverse_height = 0.85f / half_height;
        part.alpha = 1;
        part.softness = 0.02f;
      };
      for (int i = 0; i < rows * columns && scene_.parts < Scene::max_parts - 2 * (count - c); ++i) {
        const float px = x +
                         width *
                             (2 * (static_cast<float>(i % columns) + 0.5f) / static_cast<float>(columns) - 1),
                    py =
                        y + height *
                                (2 * (static_cast<float>(i / columns) + 0.5f) / static_cast<float>(rows) - 1);
        Part part = sample_part(px, py, 1, shape, Fill::plain, true);
        upright(part, open_x, open_y);
        part.color = r.chance(0.2f) ? lit : opening;
        add(part);
      }
      if (r.chance(0.5f)) {  // a roof
        Part roof = sample_part(x, y - height - 0.35f * width, 1, Shape::polygon, any_fill(), true);
        upright(roof, width * 1.3f, width);
        roof.p0 = 3;
        turn(roof, -pi / 2);
        add(roof);
      }
      Part wall = sample_part(x, y, 1, Shape::box, any_fill(), true);
      upright(wall, width, height);
      wall.shadow = style_.shadow;
      add(wall);
    }
  }
};

}  // namespace tandem::scenes
