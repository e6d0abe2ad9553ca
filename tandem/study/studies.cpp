#include "tandem/study/studies.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/study/augment.h"
#include "tandem/study/cluster.h"
#include "tandem/study/cluster_case.h"
#include "tandem/study/correlation.h"
#include "tandem/study/devices.h"
#include "tandem/study/linear.h"
#include "tandem/study/max.h"
#include "tandem/study/plates.h"
#include "tandem/study/training_case.h"
#include "tandem/study/workers.h"
#include "tandem/study/xxt.h"
#include "tandem/text/parse_number.h"

namespace tandem {

const Registry<Study>& studies() {
  static const Registry<Study> rows(
      "study", {
                   {.name = "max",
                    .summary = "element-wise maximum of two matrices",
                    .types = "f32, f64, u8, i32, i64",
                    .example = "1000x1000 i32",
                    .kind = CaseKind::matrix,
                    .options = {"versions", "threads", "with", "peers"},
                    .run = study_max},
                   {.name = "xxt",
                    .summary = "matrix product X·Xᵀ",
                    .types = "f32, tf32, f64",
                    .example = "1000x1000 f32",
                    .kind = CaseKind::matrix,
                    .options = {"versions", "threads", "with", "peers"},
                    .run = study_xxt},
                   {.name = "correlation",
                    .summary = "weighted sum of the neighbors of every pixel",
                    .types = "f32, f64",
                    .example = "1024x1024 f32 3x3",
                    .kind = CaseKind::kernel,
                    .options = {"versions", "threads", "kernels", "with", "peers"},
                    .run = study_correlation},
                   {.name = "linear",
                    .summary = "the three products of a linear layer",
                    .example = "784x200 batch 16",
                    .kind = CaseKind::layer,
                    .options = {"versions", "threads"},
                    .run = study_linear},
                   {.name = "devices",
                    .summary = "the same training on each device",
                    .example = "784,200,10 batch 16",
                    .kind = CaseKind::training,
                    .options = {"threads"},
                    .run = study_devices},
                   {.name = "workers",
                    .summary = "augmentation with 1, 2, 4, … threads and processes",
                    .options = {"workers", "threads", "data", "limit", "augment", "layers", "with"},
                    .run = study_workers},
                   {.name = "augment",
                    .summary = "training with and without augmentation",
                    .options = {"epochs", "seeds", "data", "limit", "augment", "layers", "with"},
                    .run = study_augment},
                   {.name = "plates",
                    .summary = "transfer learning on photographs",
                    .options = {"epochs", "pretrained"},
                    .run = study_plates},
                   {.name = "cluster",
                    .summary = "training on 1, 2, 4, … ranks, and a model of more",
                    .example = "resnet18 224 batch 32",
                    .kind = CaseKind::cluster,
                    .options = {"ranks", "simulate"},
                    .run = study_cluster},
               });
  return rows;
}

void check_case(const Study& study, std::string_view text) {
  check(study.kind != CaseKind::none, "[study {}] expected no cases, got \"{}\"", study.name, text);
  if (study.kind == CaseKind::training)
    parse_training_case(text);
  else if (study.kind == CaseKind::cluster)
    parse_cluster_case(text);
  else if (study.kind == CaseKind::layer)
    parse_linear_case(text);
  else
    parse_case(study, text);
}

Study without_kernel(Study study) {
  expect(study.kind == CaseKind::kernel);
  study.kind = CaseKind::matrix;
  study.example.resize(study.example.rfind(' '));
  return study;
}

std::vector<std::string> join_cases(const std::vector<std::string>& parts) {
  std::vector<std::string> cases;
  bool whole = true;
  for (const std::string& part : parts) {
    if (whole)
      cases.push_back(part);
    else
      cases.back() += ',' + part;
    whole = part.find(' ') != std::string::npos;
  }
  return cases;
}

CaseName parse_case(const Study& study, std::string_view text) {
  CaseName parsed;
  std::string_view rest = text;
  const auto next_word = [&] {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return word;
  };
  const auto next_size = [&](std::int64_t& rows, std::int64_t& columns) {
    const auto numbers = parse_numbers<std::int64_t>(next_word(), 'x');
    if (!numbers || numbers->size() != 2 || std::ranges::min(*numbers) < 1) return false;
    rows = numbers->front();
    columns = numbers->back();
    return true;
  };
  bool valid = !text.ends_with(' ') && next_size(parsed.rows, parsed.columns);
  if (valid) parsed.type = next_word();
  if (valid && study.kind == CaseKind::kernel) valid = next_size(parsed.kernel_rows, parsed.kernel_columns);
  check(valid && rest.empty() && !parsed.type.empty(),
        "[study {}] expected a case such as \"{}\", got \"{}\"", study.name, study.example, text);
  const std::string known = fmt::format(", {}, ", study.types);
  check(known.find(fmt::format(", {}, ", parsed.type)) != std::string::npos,
        "[study {}] expected one of the types {}, got {}", study.name, study.types, parsed.type);
  return parsed;
}

}  // namespace tandem
