#include "apps/tandem/advice.h"

#include <fmt/format.h>

#include <filesystem>

#include "tandem/data/dataset_registry.h"
#include "tandem/text/message.h"

namespace tandem {
namespace {

struct Advice {
  std::string_view words;  // in the error's text
  std::string_view text;
  bool about_names = false;  // not for a misspelled one
};

constexpr Advice all_advice[] = {
    {"is not empty: expected a new or empty run folder", "give another --out, or --resume RUNDIR"},
    {".safetensors: the file exists", "--force writes over it"},
    {".tandem: the file exists", "--force writes over it"},
    {"is in use by ", "wait for it or stop it, or give another --out"},
    {"the data changed since the run was saved",
     "--accept-changed-data goes on with it, another --out starts a new run"},
    {"belongs to another configuration", "give these options as they were, or start a new run with --out"},
    {"its folds fitted the last layer only", "another --out starts a new run"},
    {" for validation, got ", "--validation 0 holds none out"},
    {"early_stopping requires images held out", "--validation N holds out N images"},
    {"the loss is not finite", "--lr sets the learning rate"},
    {"is not a model this program knows", "--with FILE loads a plugin with a model of your own"},
    {"; it was used with the plugin ", "--with FILE loads it"},
    {"expected none, digits, photo, or operations", "--with FILE adds one of your own", true},
    {"--model: expected one of ", "--with FILE adds one of your own", true},
    {" ranks, one per shard of a batch",
     "--shards N makes N shards; on --resume the run is then the same to rounding"},
    {"(libnccl.so.2)", "--comm host exchanges gradients through the CPU"},
    {": NCCL expects one for each rank", "--comm host exchanges gradients through the CPU"},
    {" shards, one per image of a batch", "--shards sets their number, --batch-size that of the images"},
    {"expected batch norms over shards with ", "--batch-norm shard"},
    {" passes on each of ", "--shards sets their number"},
    {" differ in the run to resume: ", "--out must name a folder that all nodes see"},
    {"mpirun (Open MPI) has bound every rank to one core", "mpirun --bind-to none uses all"},
    {"mpiexec (MPICH) has bound every rank to one core", "mpiexec -bind-to none uses all"},
    {"srun has bound every rank to one core", "srun --cpus-per-task N gives each rank N"},
    {"expected the ImageNet weights of ", "tandem fetch MODEL downloads them"},
    {": not the weights of this model: ", "--model NAME chooses the model"},
    {"is not read or fetched unasked", "give DATA, or --own-data to use it"},
    {"and cannot be fetched", "--from PATH gives its files"},
};

}  // namespace

std::string with_advice(std::string_view error) {
  const bool is_misspelled = error.find("; did you mean ") != error.npos;
  for (const Advice& advice : all_advice)
    if (error.find(advice.words) != error.npos && !(is_misspelled && advice.about_names))
      return fmt::format("{} ({})", error, advice.text);
  return std::string(error);
}

void tell_named_data(const std::string& data) {
  std::error_code ignored;
  if (datasets().find(data) && std::filesystem::is_directory(data, ignored))
    print_message("Using the data set {0}, not the folder {0}: ./{0} is the folder\n", data);
}

}  // namespace tandem
