#include "tandem/report/step_record.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem {
namespace {

TEST(StepRecord, Row_IsReadAgain) {
  NumberRows rows;
  EXPECT_FALSE(rows.set("step,epoch,loss,memory_mb,other"));
  ASSERT_TRUE(rows.set("7,2,0.25,100.5,9"));
  const StepRecord record = step_record(rows);
  EXPECT_EQ(record.step, 7);
  EXPECT_EQ(record.epoch, 2);
  EXPECT_EQ(record.loss, 0.25);
  EXPECT_EQ(record.memory_mb, 100.5);
  EXPECT_TRUE(std::isnan(record.learning_rate));
  NumberRows again;
  const std::string header = steps_csv_header(), row = steps_csv_row(record);
  EXPECT_FALSE(again.set(header.substr(0, header.size() - 1)));
  ASSERT_TRUE(again.set(row.substr(0, row.size() - 1)));
  EXPECT_EQ(steps_csv_row(step_record(again)), row);
}

TEST(StepRecord, OtherRows_AreNotTaken) {
  NumberRows rows;
  rows.set("step,epoch,loss");
  EXPECT_FALSE(rows.set("7,2"));
  EXPECT_FALSE(rows.set("7,2,1,1"));
  EXPECT_FALSE(rows.set("7,2,x"));
  ASSERT_TRUE(rows.set("1.5,-1,"));
  EXPECT_EQ(step_record(rows).step, 0);
  EXPECT_EQ(step_record(rows).epoch, 0);
}

TEST(StepCurves, FiguresThatWereNotMeasured_HaveNoPoints) {
  StepCurves curves;
  EXPECT_TRUE(curves.empty());
  curves.add({.step = 3, .loss = 0.5});
  EXPECT_FALSE(curves.empty());
  EXPECT_EQ(curves.of(&StepRecord::loss).points().size(), 1u);
  EXPECT_TRUE(curves.of(&StepRecord::memory_mb).empty());
}

}  // namespace
}  // namespace tandem
