// The kernel behind SceneRenderer.
#pragma once

#include "tandem/data/synthetic/scene_render.h"
#include "tandem/device/stream.h"

namespace tandem::detail {

struct ScenePictures {
  scenes::Scene* scene;      // request.scenes; memory to work in
  scenes::View* view;        // views × scenes
  std::uint8_t* pixels;      // (views × scenes, size, size, 3): view v of scene i is number v × scenes + i
  std::int32_t* attributes;  // (scenes, attribute_count); may be null
};

// Renders the scenes from number *first on.
template <Backend>
void render_scenes_kernel(const scenes::Request& request, const std::int64_t* first, const ScenePictures& out,
                          StreamView stream);

}  // namespace tandem::detail
