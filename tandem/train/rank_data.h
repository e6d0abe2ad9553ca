// Whether the ranks of a run, each of which loads the data itself, have the same data.
#pragma once

#include "tandem/dist/group.h"
#include "tandem/dist/handshake.h"
#include "tandem/train/data_list.h"

namespace tandem {

// Of the images themselves: hashes of the pixels of images in memory, of the sizes of files (of some thousand
// if there are more).
NamedTexts image_fingerprints(const TrainingData& data);

// Error with the first rank whose data differs from that of rank 0, and how. All ranks call it together.
void check_same_data(Group& group, const DataList& list, const NamedTexts& fingerprints);

}  // namespace tandem
