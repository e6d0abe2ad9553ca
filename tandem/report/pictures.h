// Classified images in a page, embedded as data URIs.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/training_report.h"

namespace tandem {

// The text form of bytes in a data URI.
std::string base64(const std::string& bytes);

// "97.05 %": two decimals, because models differ in the second one; "–" if it was not measured.
std::string percent(double share);

// The image alone; its name and confidence are shown on hover.
std::string thumbnail_html(const ClassifiedImage& image);

// Images with their confidence and name, and with their classes unless the text around them names those.
std::string images_html(const std::vector<ClassifiedImage>& images, bool with_classes = true);

// The style sheet (CSS) of both.
std::string images_style();

}  // namespace tandem
