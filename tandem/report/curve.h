// A curve of any number of points in bounded memory: neighboring points share a bucket that keeps the lowest
// and the highest of them, so that no peak is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tandem {

struct CurvePoint {
  double x = 0, y = 0;
};

class Curve {
 public:
  explicit Curve(std::size_t max_buckets = 8192);  // at least 2

  // `x` increases. A point that is not finite is left out.
  void add(double x, double y);

  // From left to right: at most two per bucket.
  std::vector<CurvePoint> points() const;
  // The last point that was added.
  std::optional<CurvePoint> last() const { return last_; }
  bool empty() const { return buckets_.empty(); }

 private:
  struct Bucket {
    CurvePoint low, high;
  };
  void merge_pairs();

  std::size_t max_buckets_;
  std::int64_t per_bucket_ = 1;  // points
  std::int64_t in_last_ = 0;     // points in the last bucket
  std::vector<Bucket> buckets_;
  std::optional<CurvePoint> last_;
};

}  // namespace tandem
