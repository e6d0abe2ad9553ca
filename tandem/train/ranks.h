// What the ranks of a run tell each other besides gradients. All ranks call these functions together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/data/skipped_sample.h"
#include "tandem/dist/group.h"
#include "tandem/dist/handshake.h"
#include "tandem/files/safetensors.h"
#include "tandem/nn/module.h"

namespace tandem {

// Throws an Error that all ranks have found. Rank 0 tells it to the others, which wait for that: else any of
// them might, and seem to be where it comes from.
[[noreturn]] void fail_together(Group& group, const std::string& text);

// The text of rank 0.
std::string broadcast_text(Group& group, const std::string& mine);

// The texts of all ranks.
std::vector<std::string> gather_texts(Group& group, const std::string& mine);

// The texts of all ranks, for rank 0; the others get nothing. For long texts: no rank but the first holds
// more than two of them.
std::vector<std::string> collect_texts(Group& group, std::string mine);

// The file that rank 0 has read, if it has; the others give nothing.
std::optional<TensorFile> broadcast_file(Group& group, std::optional<TensorFile> mine);

// Copies the weights and buffers of rank 0's model to those of the others.
void broadcast_weights(Group& group, const Module& model);

// What any rank has skipped, by name.
std::vector<SkippedSample> gather_skipped(Group& group, const std::vector<SkippedSample>& mine);

// A hash of the tensor's bytes, in hexadecimal digits.
std::string hash_text(const Tensor& tensor);

// Error with the first rank whose tensors differ from those of rank 0, compared by hashes.
void check_same_values(Group& group, const NamedTensors& tensors);

// Which ranks have the lowest number: ", first on rank 2 (host n1)". Empty for one process.
std::string describe_first(Group& group, std::int64_t number);

// Error with the first text in which a rank differs from rank 0.
void check_ranks_agree(Group& group, const NamedTexts& texts);

}  // namespace tandem
