// What a meal leaves on a plate: sauce, smears, crumbs, leftovers, dried rings and grease.
#pragma once

#include "tandem/data/plates_scene.h"

namespace tandem {

// At least one thing that is seen at once, and often several.
void paint_dirt(Canvas& canvas, const Plate& plate, const Light& light, PlateDraws& draws);

}  // namespace tandem
