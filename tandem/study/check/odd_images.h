// Images that differ from most others in size or color, and classes that differ in number.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tandem/report/check_report.h"
#include "tandem/study/check/survey.h"

namespace tandem {

// The image of a file as reports show it, without a picture.
CheckedImage checked_image(const CheckedFiles& files, std::span<const ImageFacts> images, std::int64_t file);

// Odd are images whose shorter side is below a quarter of the median, or whose sides have a ratio of 3 or
// more and twice the median.
CheckedSizes check_sizes(const CheckedFiles& files, std::span<const ImageFacts> images);

// Images of one color, nearly black or white ones, gray ones where colored ones are usual and the reverse,
// and those of a very unusual mean color.
std::vector<OddImage> check_colors(const CheckedFiles& files, std::span<const ImageFacts> images);

// The images of each class that were read.
std::vector<CheckedClass> count_classes(const CheckedFiles& files, std::span<const ImageFacts> images);
// Sentences about classes without images and of very different sizes.
std::vector<std::string> check_balance(const std::vector<CheckedClass>& classes,
                                       const std::vector<std::string>& parts);

}  // namespace tandem
