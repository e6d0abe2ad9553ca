#include "tandem/report/curve.h"

#include <cmath>

#include "tandem/core/error.h"

namespace tandem {

Curve::Curve(std::size_t max_buckets) : max_buckets_(max_buckets) {
  expect(max_buckets >= 2);
}

void Curve::add(double x, double y) {
  if (!std::isfinite(x) || !std::isfinite(y)) return;
  const CurvePoint point{x, y};
  last_ = point;
  if (buckets_.empty() || in_last_ == per_bucket_) {
    if (buckets_.size() == max_buckets_) merge_pairs();
    if (buckets_.empty() || in_last_ == per_bucket_) {
      buckets_.push_back({point, point});
      in_last_ = 1;
      return;
    }
  }
  Bucket& bucket = buckets_.back();
  if (y < bucket.low.y) bucket.low = point;
  if (y > bucket.high.y) bucket.high = point;
  ++in_last_;
}

// Every bucket then has room for twice as many points. Of an odd number of buckets the last is half full.
void Curve::merge_pairs() {
  std::size_t merged = 0;
  for (std::size_t i = 0; i < buckets_.size(); i += 2) {
    Bucket both = buckets_[i];
    if (i + 1 < buckets_.size()) {
      const Bucket& next = buckets_[i + 1];
      if (next.low.y < both.low.y) both.low = next.low;
      if (next.high.y > both.high.y) both.high = next.high;
    }
    buckets_[merged++] = both;
  }
  in_last_ += buckets_.size() % 2 == 0 ? per_bucket_ : 0;
  buckets_.resize(merged);
  per_bucket_ *= 2;
}

std::vector<CurvePoint> Curve::points() const {
  std::vector<CurvePoint> all;
  all.reserve(2 * buckets_.size());
  for (const Bucket& bucket : buckets_) {
    const bool rises = bucket.low.x <= bucket.high.x;
    all.push_back(rises ? bucket.low : bucket.high);
    if (bucket.low.x != bucket.high.x) all.push_back(rises ? bucket.high : bucket.low);
  }
  return all;
}

}  // namespace tandem
