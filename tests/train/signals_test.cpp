#include "tandem/train/signals.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "tandem/core/error.h"

namespace tandem {
namespace {

int received = 0;
void own_handler(int signal) {
  received = signal;
}

// The test may have been started with signals ignored; begin from the defaults and put back what was there.
class SignalsTest : public testing::Test {
 protected:
  SignalsTest() {
    for (sighandler_t* before = before_.data(); const int signal : signals)
      *before++ = ::signal(signal, SIG_DFL);
  }
  ~SignalsTest() override {
    for (const sighandler_t* before = before_.data(); const int signal : signals) ::signal(signal, *before++);
  }

 private:
  static constexpr std::array<int, 3> signals{SIGINT, SIGHUP, SIGPIPE};
  std::array<sighandler_t, 3> before_{};
};
using SignalsDeathTest = SignalsTest;

TEST_F(SignalsTest, SignalsToEnd_RequestStop) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
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
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1}) {
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

TEST_F(SignalsTest, IgnoredSignals_StayIgnored) {  // as in the background of a shell, and with nohup
  for (const int signal : {SIGINT, SIGHUP}) {
    const sighandler_t before = ::signal(signal, SIG_IGN);
    {
      const SignalWatch watch;
      ::raise(signal);
      EXPECT_FALSE(watch.stop_requested());
      ::raise(SIGTERM);
      EXPECT_TRUE(watch.stop_requested());
    }
    EXPECT_EQ(::signal(signal, before), SIG_IGN);
  }
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
