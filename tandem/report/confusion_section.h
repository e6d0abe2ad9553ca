// The section of a training page about the test images: which classes were confused, with their pictures.
#pragma once

#include <string>

#include "tandem/report/confusion.h"
#include "tandem/report/page.h"
#include "tandem/report/training_report.h"

namespace tandem {

// Up to max_matrix_classes classes a matrix. Its cells link to their images, which are shown at the bottom of
// the screen, with CSS alone. Above it a list of the most frequent confusions. Both with a table of the
// classes.
PageSection confusion_section(const TrainingReport& report, const Confusion& all);

// The style sheet (CSS) of the section; it depends on the number of classes and the lengths of their names.
std::string confusion_style(const TrainingReport& report);

}  // namespace tandem
