// What augmentation is worth: the same network trained on the same images as they are and augmented, for as
// many epochs and batches, judged after every epoch.
#pragma once

#include <vector>

#include "tandem/data/image_set.h"
#include "tandem/report/study_report.h"
#include "tandem/study/augment_findings.h"
#include "tandem/study/options.h"

namespace tandem {

// On mnist where it is at hand, else on drawn digits; 1,000, 10,000 and 60,000 images.
StudyReport study_augment(const StudyOptions& options = {});

// Plain and augmented with seeds seed, seed + 1, …; each seed has images of its own as long as there are
// enough.
AugmentResult compare_augmentation(const DataSplit& data, const AugmentCase& augment_case,
                                   const StudyOptions& options);

}  // namespace tandem
