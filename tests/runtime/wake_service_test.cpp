// How other machines wake a host: what it announces, what it makes of datagrams, and that no store holds it up.

#include "host/runtime/wake_service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <map>
#include <optional>

#include "base/random.hpp"
#include "host/queue/wake/datagram.hpp"
#include "tests/support/forwarding_queues.hpp"

namespace sluice::runtime {
namespace {

using queue::Half;
using queue::wake::Announcement;
using std::chrono_literals::operator""s;
using testing::HasSubstr;
using testing::Not;

/// How long a test waits for what should come at once.
constexpr Duration kPatience = 60s;
constexpr const char* kSecret = "0123456789abcdef";

/// A table as far as it wakes; any number of queues lie in it. Thread-safe.
class Table {
 public:
  Result<double> announce(const Announcement& announcement) {
    const MutexLock lock(mutex_);
    ++announcements_;
    changed_.notify_all();
    if (failure_) {
      return *failure_;
    }
    told_[announcement.host] = announcement;
    return 1.0;
  }
  void withdraw(const std::string& host) {
    const MutexLock lock(mutex_);
    told_.erase(host);
    changed_.notify_all();
  }
  void rung(const std::string& bell) {
    const MutexLock lock(mutex_);
    ++rung_[bell];
    changed_.notify_all();
  }
  void fail(std::optional<Error> failure) {
    const MutexLock lock(mutex_);
    failure_ = std::move(failure);
  }

  Announcement wait_for_announcement(const std::string& host) {
    const MutexLock lock(mutex_);
    EXPECT_TRUE(wait([&]() SLUICE_NO_TSA { return told_.contains(host); }));
    return told_[host];
  }
  void wait_for_no_announcement() {
    const MutexLock lock(mutex_);
    EXPECT_TRUE(wait([&]() SLUICE_NO_TSA { return told_.empty(); }));
  }
  void wait_for_tries(int tries) {
    const MutexLock lock(mutex_);
    EXPECT_TRUE(wait([&]() SLUICE_NO_TSA { return announcements_ >= tries; }));
  }
  void wait_for_ring(const std::string& bell) {
    const MutexLock lock(mutex_);
    EXPECT_TRUE(wait([&]() SLUICE_NO_TSA { return rung_[bell] > 0; }));
  }
  int rings(const std::string& bell) {
    const MutexLock lock(mutex_);
    return rung_[bell];
  }

 private:
  template <typename Ready>
  bool wait(Ready ready) SLUICE_REQUIRES(mutex_) {
    return changed_.wait_until(mutex_, SystemClock().steady_now() + kPatience, ready);
  }

  Mutex mutex_;
  Condition changed_;
  std::map<std::string, Announcement> told_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, int> rung_ SLUICE_GUARDED_BY(mutex_);
  std::optional<Error> failure_ SLUICE_GUARDED_BY(mutex_);
  int announcements_ SLUICE_GUARDED_BY(mutex_) = 0;
};

class PlaceInTable final : public queue::wake::WakePlace {
 public:
  PlaceInTable(Table& table, std::string queue) : table_(table), queue_(std::move(queue)) {}

  const std::string& name() const override { return name_; }
  std::string bell(Half half) const override { return queue::wake::bell_name(queue_, half); }
  WallTime now() const override { return SystemClock().wall_now(); }
  Result<double> announce(const Announcement& announcement, Deadline) override { return table_.announce(announcement); }
  Result<void> withdraw(const std::string& host, Deadline) override {
    table_.withdraw(host);
    return {};
  }
  Result<std::vector<Announcement>> read(Deadline) override { return std::vector<Announcement>(); }
  void ring_here(Half half) override { table_.rung(bell(half)); }

 private:
  Table& table_;
  const std::string queue_;
  const std::string name_ = "table 't'";
};

/// Queues that are there to be rung only; "file" lies where nobody is rung.
class RungQueues final : public test::ForwardingQueues {
 public:
  explicit RungQueues(Table& table) : table_(table) {}

  Result<std::unique_ptr<queue::wake::WakePlace>> open_wake_place(const std::string& queue) override {
    std::unique_ptr<queue::wake::WakePlace> place;
    if (queue != "file") {
      place = std::make_unique<PlaceInTable>(table_, queue);
    }
    return place;
  }

 private:
  Table& table_;
};

class WakeServiceTest : public testing::Test {
 protected:
  std::unique_ptr<WakeService> open(const config::WakeConfig& config) {
    auto opened = WakeService::open({queues_, metrics_, log_, clock_}, config, "h:1:x", [] {
      return std::vector<queue::QueueAddress>{
          {"orders", Half::standard}, {"mails", Half::standard}, {"mails", Half::dlq}, {"file", Half::standard}};
    });
    EXPECT_TRUE(opened) << opened.error().message();
    return std::move(*opened);
  }
  /// A host that has said where it listens.
  std::unique_ptr<WakeService> start(const config::WakeConfig& config) {
    auto service = open(config);
    EXPECT_TRUE(service->start());
    table_.wait_for_announcement("h:1:x");
    return service;
  }
  void ring(const WakeService& service, const std::string& bell, const std::string& secret = "") {
    send(service, queue::wake::write_datagram({bell, clock_.wall_now(), ++nonce_}, secret));
  }
  static void send(const WakeService& service, const std::string& bytes) {
    queue::wake::DatagramSender sender;
    ASSERT_TRUE(sender.send(*queue::wake::parse_address(service.address()), bytes));
  }

  SystemClock clock_;
  Table table_;
  RungQueues queues_{table_};
  observe::Metrics metrics_;
  observe::Log log_{observe::LogLevel::off, observe::LogFormat::text};
  std::uint64_t nonce_ = 0;
};

TEST_F(WakeServiceTest, AnnouncesWhereItListensAndForWhichQueues) {
  const auto service = start({.listen = "127.0.0.1:0", .announce = "", .secret = ""});
  const Announcement told = table_.wait_for_announcement("h:1:x");
  EXPECT_EQ(told.address, service->address());
  EXPECT_EQ(told.queues, (std::vector<std::string>{"mails", "mails/dlq", "orders"}));
  EXPECT_EQ(told.every, queue::wake::Announcer::kEvery);
}

TEST_F(WakeServiceTest, ADatagramWakesItsQueueAndNoOther) {
  const auto service = start({.listen = "127.0.0.1:0", .announce = "", .secret = ""});
  ring(*service, "mails/dlq");
  table_.wait_for_ring("mails/dlq");
  EXPECT_EQ(table_.rings("mails"), 0);
  EXPECT_EQ(table_.rings("orders"), 0);
}

TEST_F(WakeServiceTest, ListensOnIPv6AsWell) {
  const auto service = start({.listen = "[::1]:0", .announce = "", .secret = ""});
  EXPECT_EQ(service->address().rfind("[::1]:", 0), 0U);
  ring(*service, "orders");
  table_.wait_for_ring("orders");
}

TEST_F(WakeServiceTest, WhatIsForgedOrNonsenseWakesNobodyAndIsCounted) {
  const auto service = start({.listen = "127.0.0.1:0", .announce = "", .secret = kSecret});
  send(*service, "nonsense");
  send(*service, std::string(4'000, 'x'));
  ring(*service, "orders");
  ring(*service, "orders", "another secret of ours");
  ring(*service, "nobody's", kSecret);
  // Datagrams to one socket of loopback come in the order in which they were sent.
  ring(*service, "mails", kSecret);
  table_.wait_for_ring("mails");
  service->stop();
  EXPECT_EQ(table_.rings("orders"), 0);
  const std::string metrics = metrics_.text();
  EXPECT_THAT(metrics, HasSubstr("sluice_wake_datagrams_total{result=\"malformed\"} 2"));
  EXPECT_THAT(metrics, HasSubstr("sluice_wake_datagrams_total{result=\"unsigned\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("sluice_wake_datagrams_total{result=\"forged\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("sluice_wake_datagrams_total{result=\"unknown_queue\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("sluice_wake_datagrams_total{result=\"rung\"} 1"));
}

TEST_F(WakeServiceTest, AFloodIsHeardOut) {
  const auto service = start({.listen = "127.0.0.1:0", .announce = "", .secret = ""});
  for (int i = 0; i < 2'000; ++i) {
    send(*service, "nonsense");
  }
  // The kernel may have dropped what came while the flood was heard.
  while (table_.rings("orders") == 0) {
    ring(*service, "orders");
  }
  EXPECT_EQ(table_.rings("mails"), 0);
}

TEST_F(WakeServiceTest, AnotherAddressIsAnnouncedWhereOneIsGiven) {
  const auto service = start({.listen = "127.0.0.1:0", .announce = "192.0.2.7:0", .secret = ""});
  const std::string port = service->address().substr(service->address().rfind(':'));
  EXPECT_EQ(table_.wait_for_announcement("h:1:x").address, "192.0.2.7" + port) << "port 0 is the one it listens on";
}

TEST_F(WakeServiceTest, TakesItsAnnouncementBackWhenTheDrainBegins) {
  const auto service = start({.listen = "127.0.0.1:0", .announce = "", .secret = ""});
  service->withdraw();
  table_.wait_for_no_announcement();
  ring(*service, "orders");
  table_.wait_for_ring("orders");  // Who has read it before still rings.
  EXPECT_TRUE(service->leave(clock_.steady_now() + kPatience));
}

TEST_F(WakeServiceTest, TakesItBackWhenItEndsWithoutADrain) {
  { const auto service = start({.listen = "127.0.0.1:0", .announce = "", .secret = ""}); }
  table_.wait_for_no_announcement();
}

TEST_F(WakeServiceTest, WhereItCannotAnnounceItListensAllTheSame) {
  table_.fail(Error(ErrorCode::denied, "not allowed"));
  const auto service = open({.listen = "127.0.0.1:0", .announce = "", .secret = ""});
  ASSERT_TRUE(service->start());
  table_.wait_for_tries(1);
  ring(*service, "orders");
  table_.wait_for_ring("orders");
}

TEST_F(WakeServiceTest, APortThatIsTakenIsAnErrorOfTheStart) {
  const auto first = open({.listen = "127.0.0.1:0", .announce = "", .secret = ""});
  const auto second =
      WakeService::open({queues_, metrics_, log_, clock_}, {.listen = first->address(), .announce = "", .secret = ""},
                        "h", [] { return std::vector<queue::QueueAddress>(); });
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("the port is in use; choose another in [wake] listen"));
}

}  // namespace
}  // namespace sluice::runtime
