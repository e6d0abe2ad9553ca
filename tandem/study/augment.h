// The effect of augmentation: the same network trained on the same images with and without augmentation, for
// the same number of epochs and batches, evaluated on the test set after every epoch.
#pragma once

#include <vector>

#include "tandem/report/study_report.h"
#include "tandem/study/augment_findings.h"
#include "tandem/study/options.h"
#include "tandem/study/study_progress.h"
#include "tandem/study/training_setup.h"

namespace tandem {

// On MNIST if it is in the cache, else on synthetic digits, with 1,000, 10,000 and 60,000 images; or on the
// data set and the number of images of the options.
StudyReport study_augment(const StudyOptions& options = {});

// Trains plain and augmented with seeds seed, seed + 1, … Each seed uses its own images while there are
// enough. After the time limit, the seeds but the first are left out.
AugmentResult compare_augmentation(const TrainingSetup& setup, const AugmentCase& augment_case,
                                   const StudyOptions& options, StudyProgress& progress);

}  // namespace tandem
