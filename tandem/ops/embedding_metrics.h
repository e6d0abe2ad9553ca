// How well embeddings of a contrastively trained network are placed on the sphere (Wang and Isola 2020), for
// reports. Rows are normalized first. Results have shape [], are f32 (f64 for f64 embeddings), stay on the
// device and have no gradient.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// The mean of ‖a − b‖ᵖᵒʷᵉʳ over the two views of each image, rows i and i + n of embeddings (2n, d). 0 is
/// best. Throws Error for another rank, an odd number of rows, no rows, an integer dtype or a power that is
/// not above 0.
Tensor alignment(const Tensor& embeddings, double power = 2);

/// The logarithm of the mean of exp(−scale · ‖a − b‖²) over all pairs of different rows of embeddings (n, d);
/// lower is better, 0 means that all rows are equal. Throws Error for another rank, fewer than 2 rows, an
/// integer dtype or a scale that is not above 0.
Tensor uniformity(const Tensor& embeddings, double scale = 2);

}  // namespace tandem
