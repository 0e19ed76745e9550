// A name server that does not answer, in place of which the C library's resolver hangs.

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/plugins/live_host.hpp"
#include "tests/support/hanging_name.hpp"

namespace sluice::shipped {
namespace {

using test::hang;

// One thread looks after all messages: it must not wait for the resolver of one that has ended.
TEST(WebhookResolver, HoldsUpNoStopWhileItHangs) {
  ::setenv("no_proxy", "*", 1);
  LiveHost host("webhook", {{"url", "http://hangs.invalid/"}});
  Stop stop;
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Result> result;
  std::jthread worker([&] {
    const Result came = host.handle({.body = "x"}, stop);
    const std::lock_guard lock(mutex);
    result = came;
    ended.notify_all();
  });
  ASSERT_TRUE(hang().wait_until_asked());
  stop.requested = true;
  {
    std::unique_lock lock(mutex);
    ended.wait_for(lock, std::chrono::seconds(10), [&] { return result.has_value(); });
    EXPECT_TRUE(result && result->status == SLUICE_RELEASE);
  }
  hang().let_go();
}

}  // namespace
}  // namespace sluice::shipped
