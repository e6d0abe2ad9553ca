// What a meal leaves on a plate: sauce, smears, crumbs, leftovers, dried rings and grease.
#pragma once

#include "tandem/data/synthetic/plates_scene.h"

namespace tandem {

// Paints at least one clearly visible thing, often several.
void paint_dirt(Canvas& canvas, const Plate& plate, const Light& light, PlateRng& rng);

}  // namespace tandem
