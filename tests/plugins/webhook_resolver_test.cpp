// A name server that does not answer, in place of which the C library's resolver hangs.

#include <dlfcn.h>
#include <netdb.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/plugins/live_host.hpp"

namespace {

/// Who asks for a name below "hangs.invalid" waits until it is let go.
class Hang {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return gone_on_; });
  }
  bool wait_until_asked() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [this] { return asked_; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    gone_on_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;
  bool gone_on_ = false;
};

Hang& hang() {
  static auto* const hang = new Hang();  // who asks may outlive the test
  return *hang;
}

}  // namespace

/// libcurl finds this one before the C library's.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* node, const char* service,
                                                                  const addrinfo* hints, addrinfo** found) {
  if (node != nullptr && std::string_view(node).ends_with("hangs.invalid")) {
    hang().wait();
    return EAI_AGAIN;
  }
  static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(node, service, hints, found);
}

namespace sluice::shipped {
namespace {

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
