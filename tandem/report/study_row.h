// One measurement of a study, and the table of its fields. JSON, CSV, the text and HTML tables and the bar
// plots are made from the table: a new figure is one row of it.
#pragma once

#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "tandem/text/format_number.h"

namespace tandem {

// The key of a figure, checked at compile time: only keys of figures in `study_fields` compile.
struct Figure {
  consteval Figure(const char* key_of_figure);

  std::string_view key;
};

struct FigureValue {
  Figure figure;
  std::optional<double> value;
};

// The measured figures of a row; most rows have only some of them.
class Figures {
 public:
  Figures() = default;
  Figures(std::initializer_list<FigureValue> values) {
    for (const FigureValue& each : values) values_[each.figure.key] = each.value;
  }

  std::optional<double>& operator[](Figure figure) { return values_[figure.key]; }
  std::optional<double> operator[](Figure figure) const { return find(figure.key); }

  // `key` is that of a StudyField.
  void set(std::string_view key, double value) { values_[key] = value; }

  std::optional<double> find(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : found->second;
  }

 private:
  std::map<std::string_view, std::optional<double>> values_;  // the keys are those of `study_fields`
};

struct StudyRow {
  std::string case_name;  // "1000×1000 i32"; rows of the same case are compared
  std::string version;    // "reference", "parallel", "cuda-simple", "cuda"; for training "cpu" or "cuda"
  std::string device;     // "cpu", "cuda:0"
  std::optional<int> threads{};  // set when the thread count was swept
  std::optional<int> workers{};  // augmentation workers
  std::optional<int> ranks{};    // processes that share every batch
  std::string basis{};           // "modelled" for figures that were not measured
  std::optional<int> epoch{};    // after which the accuracy was measured
  Figures figures{};
  bool agrees = true;     // the result equals the reference's, within the tolerance
  std::string engine{};   // training engine: "perceptron on the CPU, 2 threads"
  std::string note{};     // "oversubscribed": more threads or workers than CPUs
  std::string failure{};  // of a plugin that gave no result: "was ended by signal 11"; agrees is false then

  // NaN when absent.
  double value(Figure figure) const {
    return figures[figure].value_or(std::numeric_limits<double>::quiet_NaN());
  }
};

// How a table shows a number. A pair shares its cell with the next field.
enum class CellStyle {
  value,         // with its unit
  rounded,       // three significant digits: "24,100"
  range_pair,    // "410–452 µs"
  percent_pair,  // "98.21 ± 0.05 %"
  points_pair,   // percentage points: "+2.31 ± 0.20"
  bar            // with its unit, in HTML beside a bar of its share
};

// A bar plot over all cases, one bar per version.
struct FigurePlot {
  std::string_view title{};  // empty: no plot
  std::string_view y_label{};
  std::string_view better{};  // "lower" or "higher"
};

// Where a row keeps the field: in a member, or, for monostate, in `figures`.
using StudyMember =
    std::variant<std::monostate, std::string StudyRow::*, std::optional<int> StudyRow::*, bool StudyRow::*>;

struct StudyField {
  std::string_view key;        // in JSON and CSV
  std::string_view header{};   // of the column in tables; empty: no column of its own
  std::string_view meaning{};  // a phrase that explains the column
  Unit unit = Unit::none;
  CellStyle style = CellStyle::value;
  int column = 0;  // tables and CSV are in this order, from left to right
  bool in_csv = false;
  FigurePlot plot{};
  StudyMember member{};
};

// In the order of the JSON.
inline constexpr StudyField study_fields[] = {
    {.key = "case", .in_csv = true, .member = &StudyRow::case_name},
    {.key = "version",
     .header = "version",
     .meaning = "how it was computed",
     .column = 1,
     .in_csv = true,
     .member = &StudyRow::version},
    {.key = "device",
     .header = "device",
     .meaning = "where it was computed",
     .column = 2,
     .in_csv = true,
     .member = &StudyRow::device},
    {.key = "median_ms",
     .header = "median",
     .meaning =
         "median time of the repetitions (training: one epoch; ranks: one step), data already on the device",
     .unit = Unit::milliseconds,
     .column = 9,
     .in_csv = true,
     .plot = {"Time by version", "median time", "lower"}},
    {.key = "min_ms",
     .header = "min–max",
     .meaning = "fastest and slowest repetition",
     .unit = Unit::milliseconds,
     .style = CellStyle::range_pair,
     .column = 10,
     .in_csv = true},
    {.key = "max_ms", .unit = Unit::milliseconds, .column = 10, .in_csv = true},
    {.key = "with_copies_ms",
     .header = "+ copies",
     .meaning = "median time including the copies to the device and back (training: all images, once)",
     .unit = Unit::milliseconds,
     .column = 11,
     .in_csv = true},
    {.key =
         "speedup",  // over the `reference` of the case; for training, over the CPU with the fewest threads
     .header = "speed-up",
     .meaning = "how many times faster than the reference (training: than the CPU, with the fewest threads)",
     .unit = Unit::ratio,
     .column = 12,
     .in_csv = true},
    {.key = "samples_per_s",  // for training; the times are then per epoch
     .header = "samples/s",
     .meaning = "samples trained or augmented per second",
     .style = CellStyle::rounded,
     .column = 13},
    {.key = "gb_per_s",
     .header = "GB/s",
     .meaning = "memory read and written per second",
     .column = 19,
     .in_csv = true},
    {.key = "gflop_per_s",
     .header = "GFLOP/s",
     .meaning = "additions and multiplications per second",
     .column = 20,
     .in_csv = true},
    {.key = "share_of_peak",  // 1 is this machine's measured peak
     .header = "of peak",
     .meaning = "share of the peak measured on this machine",
     .unit = Unit::share,
     .style = CellStyle::bar,
     .column = 21,
     .in_csv = true,
     .plot = {"Share of this machine's measured peak", "share of peak", "higher"}},
    {.key = "agrees", .column = 22, .in_csv = true, .member = &StudyRow::agrees},
    {.key = "max_error", .column = 23, .in_csv = true},
    {.key = "threads",
     .header = "threads",
     .meaning = "CPU threads",
     .column = 3,
     .in_csv = true,
     .member = &StudyRow::threads},
    {.key = "note",
     .header = "note",
     .meaning = "oversubscribed: more threads, workers or ranks than CPUs",
     .column = 22,
     .member = &StudyRow::note},
    {.key = "failure", .member = &StudyRow::failure},
    {.key = "engine", .member = &StudyRow::engine},
    {.key = "workers",
     .header = "workers",
     .meaning = "threads or processes that augment",
     .column = 4,
     .member = &StudyRow::workers},
    {.key = "waited_ms",
     .header = "waited",
     .meaning = "time per epoch the trainer waited for images",
     .unit = Unit::milliseconds,
     .column = 14},
    {.key = "efficiency",
     .header = "efficiency",
     .meaning =
         "samples/s per worker, relative to the fewest workers; of ranks, relative to one rank with all "
         "CPUs or, modelled, to ranks that exchange nothing",
     .unit = Unit::share,
     .column = 18},
    {.key = "ranks", .member = &StudyRow::ranks},
    {.key = "basis", .member = &StudyRow::basis},
    {.key = "without_exchange_ms", .unit = Unit::milliseconds},  // a step whose exchange returns at once
    {.key = "exchange_ms",
     .header = "exchange",
     .meaning = "time of a step's exchange between the ranks when nothing else runs",
     .unit = Unit::milliseconds,
     .column = 15},
    {.key = "exposed_ms",
     .header = "exposed",
     .meaning = "how much longer a step takes than one without the exchange",
     .unit = Unit::milliseconds,
     .column = 16},
    {.key = "hidden",
     .header = "hidden",
     .meaning = "share of the exchange that does not make the step longer",
     .unit = Unit::share,
     .column = 17},
    {.key = "slowest_rank"},
    {.key = "slowest_behind", .unit = Unit::share},  // how much longer it computes than the median rank
    {.key = "epoch",
     .header = "epoch",
     .meaning = "epochs trained so far",
     .column = 5,
     .member = &StudyRow::epoch},
    {.key = "plain",  // an accuracy in 0..1; rows that have it are not checked for agreement
     .header = "plain",
     .meaning = "accuracy on the test images after training on the original images, mean and standard "
                "deviation over seeds",
     .unit = Unit::share,
     .style = CellStyle::percent_pair,
     .column = 6},
    {.key = "plain_spread", .unit = Unit::share},
    {.key = "augmented",
     .header = "augmented",
     .meaning = "the same after training on augmented images",
     .unit = Unit::share,
     .style = CellStyle::percent_pair,
     .column = 7},
    {.key = "augmented_spread", .unit = Unit::share},
    {.key = "lead",
     .header = "lead",
     .meaning = "augmented minus plain in percentage points, mean and standard deviation over seeds",
     .unit = Unit::share,
     .style = CellStyle::points_pair,
     .column = 8},
    {.key = "lead_spread", .unit = Unit::share},
    {.key = "plain_ms", .unit = Unit::milliseconds},  // median time of an epoch
    {.key = "augmented_ms", .unit = Unit::milliseconds}};

consteval Figure::Figure(const char* key_of_figure) : key(key_of_figure) {
  bool known = false;
  for (const StudyField& field : study_fields) known |= field.key == key && field.member.index() == 0;
  if (!known) throw "not a figure of study_fields";
}

}  // namespace tandem
