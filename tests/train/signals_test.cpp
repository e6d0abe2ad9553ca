#include "tandem/train/signals.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tandem/core/error.h"

namespace tandem {
namespace {

int received = 0;
void own_handler(int signal) {
  received = signal;
}

// The test may have been started with SIGINT ignored; begin from the defaults and put back what was there.
class SignalsTest : public testing::Test {
 protected:
  SignalsTest() : interrupt_(::signal(SIGINT, SIG_DFL)) {}
  ~SignalsTest() override { ::signal(SIGINT, interrupt_); }

 private:
  sighandler_t interrupt_;
};
using SignalsDeathTest = SignalsTest;

TEST_F(SignalsTest, InterruptOrTerm_RequestsStop) {
  for (const int signal : {SIGINT, SIGTERM}) {
    SignalWatch watch;
    EXPECT_FALSE(watch.stop_requested());
    ::raise(signal);
    EXPECT_TRUE(watch.stop_requested());
    EXPECT_EQ(watch.stop_signal(), signal);
    EXPECT_TRUE(watch.stop_requested());  // not reset by reading
    EXPECT_FALSE(watch.consume_save_request());
  }
  const SignalWatch fresh;
  EXPECT_FALSE(fresh.stop_requested());
}

TEST_F(SignalsTest, Usr1_RequestsSave) {
  SignalWatch watch;
  EXPECT_FALSE(watch.consume_save_request());
  for (int round = 0; round < 3; ++round) {
    ::raise(SIGUSR1);
    EXPECT_TRUE(watch.consume_save_request());
    EXPECT_FALSE(watch.consume_save_request());
  }
  EXPECT_FALSE(watch.stop_requested());
}

TEST_F(SignalsTest, SeveralTerms_AreOneRequest) {
  const SignalWatch watch;
  for (int i = 0; i < 3; ++i) ::raise(SIGTERM);
  EXPECT_EQ(watch.stop_signal(), SIGTERM);
}

TEST_F(SignalsTest, PreviousHandlers_AreRestored) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const sighandler_t before = ::signal(signal, own_handler);
    received = 0;
    {
      const SignalWatch watch;
      ::raise(signal);
      EXPECT_EQ(received, 0);
    }
    ::raise(signal);
    EXPECT_EQ(received, signal);
    ::signal(signal, before);
  }
}

TEST_F(SignalsTest, IgnoredInterrupt_StaysIgnored) {
  ::signal(SIGINT, SIG_IGN);
  {
    const SignalWatch watch;
    ::raise(SIGINT);
    EXPECT_FALSE(watch.stop_requested());
    ::raise(SIGTERM);
    EXPECT_TRUE(watch.stop_requested());
  }
  EXPECT_EQ(::signal(SIGINT, SIG_DFL), SIG_IGN);
}

TEST_F(SignalsTest, TwoWatches_AreAnInternalError) {
  const SignalWatch watch;
  EXPECT_THROW(SignalWatch(), InternalError);
  ::raise(SIGUSR1);  // still caught by the first
}

TEST_F(SignalsDeathTest, SecondInterrupt_EndsProcess) {
  EXPECT_EXIT(
      {
        const SignalWatch watch;
        ::raise(SIGINT);
        if (!watch.stop_requested()) std::_Exit(1);
        ::raise(SIGINT);
        std::_Exit(2);
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace tandem
