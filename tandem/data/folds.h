// Parts of a data set: the folds of a cross-validation, and a data set of some samples of another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/data/dataset.h"

namespace tandem {

/// The fold of every sample, from 0 to folds − 1. Folds differ by at most one sample, in all and of each
/// class; which samples they have is random, by the seed. Throws Error for fewer than two folds, and for more
/// folds than a class has samples; classes without samples do not count. Labels are indices of `classes`.
std::vector<std::int32_t> stratified_folds(std::span<const std::int32_t> labels,
                                           const std::vector<std::string>& classes, std::int64_t folds,
                                           std::uint64_t seed);

/// The samples `rows` of a data set, in that order, as a data set. Images and photographs in memory are
/// copied. Throws Error for a row out of range.
std::shared_ptr<const Dataset> subset(const std::shared_ptr<const Dataset>& dataset,
                                      const std::vector<std::int64_t>& rows);

}  // namespace tandem
