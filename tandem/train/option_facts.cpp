#include "tandem/train/option_facts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "tandem/text/utf8.h"

namespace tandem {
namespace {

std::string weights_text(const FitOptions& options, const std::vector<std::string>& classes,
                         const std::vector<double>& weights) {
  constexpr std::size_t max_classes = 12;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(weights.size(), max_classes); ++i)
    parts.push_back(fmt::format("{} {:.4g}", one_line(classes[i]), weights[i]));
  return fmt::format("{}{}{}", options.class_weights.balanced ? "balanced: " : "", fmt::join(parts, ", "),
                     weights.size() > max_classes ? ", …" : "");
}

}  // namespace

std::vector<Fact> option_facts(const FitOptions& options, const std::vector<std::string>& classes,
                               const std::vector<double>& class_weights) {
  std::vector<Fact> facts;
  if (!class_weights.empty())
    facts.push_back({"class weights", weights_text(options, classes, class_weights)});
  if (options.stage_lr_decay != 1)
    facts.push_back({"stage rates", fmt::format("each stage has {} times the learning rate of the next",
                                                options.stage_lr_decay)});
  if (options.clip_norm > 0)
    facts.push_back({"gradients", fmt::format("clipped to a norm of {}", options.clip_norm)});
  if (options.ema > 0)
    facts.push_back({"averaged weights", fmt::format("decay {}; validated and kept", options.ema)});
  if (options.lookahead > 0)
    facts.push_back({"lookahead", fmt::format("every 5 steps, decay {}", options.lookahead)});
  if (options.norm_bias_lr != 1)
    facts.push_back(
        {"norm biases", fmt::format("they have {} times the learning rate", options.norm_bias_lr)});
  if (options.test_views != TestViews::one)
    facts.push_back({"tested with", describe_views(options.test_views)});
  if (options.balanced_sampling) facts.push_back({"sampling", "every class equally often"});
  return facts;
}

std::vector<std::string> fact_lines(const std::vector<Fact>& facts) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : facts) {
    std::string line = fmt::format("{}: {}", name, value);
    line[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(line[0])));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tandem
