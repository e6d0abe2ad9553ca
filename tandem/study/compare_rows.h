// Which of two measured rows is faster, as far as their repetitions can tell.
#pragma once

#include <string>

#include "tandem/report/study_row.h"

namespace tandem {

enum class Speed { faster, slower, unclear };

// The speed of `row` relative to `other`: unclear when the spreads (min to max) of their repetitions overlap
// or when the medians differ by less than 5 %.
Speed compare_speed(const StudyRow& row, const StudyRow& other);

// other's median divided by row's.
double times_as_fast(const StudyRow& row, const StudyRow& other);

// "15 times as fast as", "about as fast as" or, for spreads that overlap although the medians differ,
// "neither clearly faster nor clearly slower than". Not for a row that is slower.
std::string relation_text(const StudyRow& row, const StudyRow& other);

// " (the spreads overlap: 0.20–1.1 ms and 0.50–0.60 ms)" where relation_text() is not clear, else empty.
std::string overlap_text(const StudyRow& row, const StudyRow& other);

// "15 times", "1.2 times", "0.40 times".
std::string times_text(double ratio);

}  // namespace tandem
