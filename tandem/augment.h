// Transforms of images: recipes for augmentation, mixup and cutmix. This header lists the public headers of
// tandem/augment.
#pragma once

#include "tandem/augment/mix.h"
#include "tandem/augment/own_operation.h"
#include "tandem/augment/photo_recipe.h"
#include "tandem/augment/recipe.h"
#include "tandem/augment/reference.h"
#include "tandem/augment/transform.h"
