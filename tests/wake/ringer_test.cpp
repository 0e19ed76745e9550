// A producer's side and a host's over loopback: a thread that rings, and sockets. What is waited for is waited for as
// long as it takes.
#include "host/queue/wake/ringer.hpp"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/queue/wake/datagram.hpp"

namespace sluice::queue::wake {
namespace {

using namespace std::chrono_literals;

class RingerTest : public ::testing::TestWithParam<const char*> {
 protected:
  static DatagramListener listen(const std::string& address) {
    auto listener = DatagramListener::open(*parse_address(address));
    if (!listener) {
      throw std::runtime_error(listener.error().message());
    }
    return std::move(*listener);
  }
  /// The next datagram, however long it takes.
  static Datagram next(DatagramListener& listener) {
    while (true) {
      if (const auto bytes = listener.take()) {
        return *Datagram::read(*bytes);
      }
      listener.wait(-1);
    }
  }

  Announcement at(const DatagramListener& listener) {
    return {.host = "h",
            .address = text_of(listener.address()),
            .queues = {"orders"},
            .at = clock_.wall_now(),
            .every = 60s};
  }

  SystemClock clock_;
  SeededRandom random_{1};
};

TEST_P(RingerTest, WhatWasPutIsHeardByTheHost) {
  auto listener = listen(GetParam());
  Ringer ringer([&](Deadline) { return std::vector{at(listener)}; }, {"a secret of ours"}, clock_, random_);
  ringer.rang("orders");
  const Datagram datagram = next(listener);
  EXPECT_EQ(datagram.ring().queue, "orders");
  EXPECT_TRUE(datagram.signed_with("a secret of ours"));
  EXPECT_LT(datagram.ring().at - clock_.wall_now(), 1h);
}
INSTANTIATE_TEST_SUITE_P(Families, RingerTest, ::testing::Values("127.0.0.1:0", "[::1]:0"));

using OneRinger = RingerTest;

TEST_F(OneRinger, NoThreadAndNoReadingBeforeSomethingIsPut) {
  int reads = 0;
  {
    Ringer ringer([&](Deadline) { return ++reads, std::vector<Announcement>(); }, {}, clock_, random_);
  }
  EXPECT_EQ(reads, 0);
}

// As a process does that sends once and ends.
TEST_F(OneRinger, TheEndRingsForWhatWasPutBefore) {
  auto listener = listen("127.0.0.1:0");
  {
    Ringer ringer([&](Deadline) { return std::vector{at(listener)}; }, {}, clock_, random_);
    ringer.rang("orders");
  }
  const auto bytes = listener.take();
  ASSERT_TRUE(bytes) << "it was sent before the ringer had ended";
  EXPECT_EQ(Datagram::read(*bytes)->ring().queue, "orders");
  EXPECT_FALSE(listener.take());
}

TEST_F(OneRinger, WhoPutsSomethingThereWaitsForNoReading) {
  std::promise<void> begun;
  std::promise<void> may_end;
  auto listener = listen("127.0.0.1:0");
  Ringer ringer(
      [&](Deadline) {
        begun.set_value();
        may_end.get_future().wait();
        return std::vector{at(listener)};
      },
      {}, clock_, random_);
  ringer.rang("orders");
  begun.get_future().wait();
  ringer.rang("orders");  // Would hang here.
  may_end.set_value();
  next(listener);
}

TEST_F(OneRinger, AReadingThatFailsIsNobodysTrouble) {
  std::promise<void> read;
  Ringer ringer(
      [&](Deadline) -> Result<std::vector<Announcement>> {
        read.set_value();
        return Error(ErrorCode::denied, "no");
      },
      {}, clock_, random_);
  ringer.rang("orders");
  read.get_future().wait();
  ringer.rang("orders");  // A second reading would set the promise twice.
}

TEST_F(OneRinger, AnAddressThatNobodyCanSendToIsPassedOver) {
  auto listener = listen("127.0.0.1:0");
  Announcement broken = at(listener);
  broken.host = "b";
  broken.address = "nowhere";
  Ringer ringer([&](Deadline) { return std::vector{broken, at(listener)}; }, {}, clock_, random_);
  ringer.rang("orders");
  next(listener);
}

TEST(DatagramListener, SaysWhyItCannotListen) {
  auto first = DatagramListener::open(*parse_address("127.0.0.1:0"));
  ASSERT_TRUE(first);
  const auto second = DatagramListener::open(first->address());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::conflict);
  EXPECT_EQ(second.error().message(), "cannot listen on " + text_of(first->address()) +
                                          " (udp): the port is in use; choose another in [wake] listen, or end the "
                                          "process that has it (`ss -lnup` names it)");
  // TEST-NET-1 belongs to nobody.
  EXPECT_EQ(DatagramListener::open(*parse_address("192.0.2.1:0")).error().code(), ErrorCode::invalid);
}

TEST(DatagramListener, AnInterruptEndsTheNextWait) {
  auto listener = DatagramListener::open(*parse_address("127.0.0.1:0"));
  ASSERT_TRUE(listener);
  listener->interrupt();
  listener->wait(-1);
  EXPECT_FALSE(listener->take());
}

TEST(DatagramListener, WhatIsTooLongComesCutAndCounts) {
  auto listener = DatagramListener::open(*parse_address("127.0.0.1:0"));
  ASSERT_TRUE(listener);
  DatagramSender sender;
  ASSERT_TRUE(sender.send(listener->address(), std::string(9'000, 'x')));
  listener->wait(-1);
  const auto bytes = listener->take();
  ASSERT_TRUE(bytes);
  EXPECT_GT(bytes->size(), kMostDatagramBytes);
  EXPECT_FALSE(Datagram::read(*bytes));
}

}  // namespace
}  // namespace sluice::queue::wake
