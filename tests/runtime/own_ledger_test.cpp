#include "host/runtime/isolation_ward.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "host/isolation/crash_ledger.hpp"
#include "tests/runtime/recovery_rig.hpp"

namespace sluice::runtime {
namespace {

using isolation::delivery;
using isolation::HeldSlot;
using isolation::JobLedger;
using std::chrono_literals::operator""s;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A host whose ledgers have no folder at first: a file lies in its place.
class OwnLedgerTest : public testing::Test {
 protected:
  OwnLedgerTest() { std::ofstream(folder_.path()) << "in the way"; }

  void make_way() { std::filesystem::remove(folder_.path()); }
  SteadyTime attempt() { return own_.attempt(clock_.steady_now()); }
  /// The ledger comes.
  void come() {
    make_way();
    clock_.advance(kLedgerRetry);
    ASSERT_EQ(attempt(), SteadyTime::max());
  }
  std::shared_ptr<JobLedger> job() { return own_.open({isolation::ledger_job()}); }
  LedgerContents read() const {
    auto contents = isolation::read_ledger(folder_.ledger());
    EXPECT_TRUE(contents) << contents.error().message();
    return contents ? *contents : LedgerContents{};
  }
  std::vector<std::string> held() const {
    std::vector<std::string> ids;
    for (const HeldMessage& held : read().held) {
      ids.push_back(held.receipt.id);
    }
    return ids;
  }

  isolation::StateFolder folder_;
  test::FakeClock clock_;
  observe::Log log_{observe::LogLevel::info, observe::LogFormat::text};
  OwnLedger own_{folder_.path(), {"host-a", "/etc/sluice/host.toml"}, clock_, log_};
};

TEST_F(OwnLedgerTest, IsThereAtOnceWhereItCanBe) {
  make_way();
  own_.begin();
  EXPECT_THAT(own_.trouble(), IsEmpty());
  EXPECT_EQ(attempt(), SteadyTime::max());
  const auto orders = job();
  orders->hold(delivery("a"));
  EXPECT_THAT(held(), ElementsAre("a"));
  EXPECT_TRUE(read().complete);
  EXPECT_EQ(folder_.ledgers().open_ledgers().size(), 1U);
}

TEST_F(OwnLedgerTest, IsTriedAgainEveryThirtySecondsUntilItIsThere) {
  own_.begin();
  EXPECT_THAT(own_.trouble(), HasSubstr("set [host] state_dir to a folder elsewhere"));
  for (int i = 0; i < 3; ++i) {
    clock_.advance(kLedgerRetry);
    EXPECT_EQ(attempt(), clock_.steady_now() + kLedgerRetry);
  }
  make_way();
  clock_.advance(kLedgerRetry - 1s);
  EXPECT_EQ(attempt(), clock_.steady_now() + 1s);
  EXPECT_THAT(folder_.ledgers().open_ledgers(), IsEmpty()) << "not before its time";
  clock_.advance(1s);
  EXPECT_EQ(attempt(), SteadyTime::max());
  EXPECT_THAT(own_.trouble(), IsEmpty());
  EXPECT_EQ(folder_.ledgers().open_ledgers().size(), 1U);
  clock_.advance(kLedgerRetry);
  attempt();
  EXPECT_EQ(folder_.ledgers().open_ledgers().size(), 1U) << "one is enough";
}

TEST_F(OwnLedgerTest, OneLineSaysThatThereIsNoneAndOneThatThereIs) {
  testing::internal::CaptureStderr();
  own_.begin();
  clock_.advance(kLedgerRetry);
  attempt();
  const auto orders = job();
  orders->hold(delivery("a"));
  come();
  log_.flush(10s);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << said;
  EXPECT_THAT(said, HasSubstr("no crash ledger"));
  EXPECT_THAT(said, HasSubstr("Not a directory; a part of its path is no folder"));
  EXPECT_THAT(said, HasSubstr("the crash ledger is kept from now on"));
  EXPECT_THAT(said, HasSubstr("held_before=1"));
}

TEST_F(OwnLedgerTest, OneThatIsLostWhileItIsInUseIsToldOfOnce) {
  make_way();
  testing::internal::CaptureStderr();
  own_.begin();
  const auto orders = job();
  std::filesystem::remove(folder_.ledger());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(attempt(), SteadyTime::max());
    EXPECT_THAT(own_.trouble(), HasSubstr("removed, replaced or cut off; restart the host"));
  }
  log_.flush(10s);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_THAT(said, HasSubstr("the crash ledger is lost"));
}

TEST_F(OwnLedgerTest, OneThatComesLateIsWholeWhenTheLastOfBeforeIsSettled) {
  own_.begin();
  const auto orders = job();
  const HeldSlot first = orders->hold(delivery("first"));
  const HeldSlot second = orders->hold(delivery("second"));
  EXPECT_EQ(first, 0U);
  orders->drop(orders->hold(delivery("settled before it came")));
  orders->started(first, "first");
  come();
  EXPECT_THAT(held(), IsEmpty());
  EXPECT_FALSE(read().complete) << "more was at work than it tells of";
  EXPECT_THAT(read().queues, ElementsAre("orders"));
  const HeldSlot third = orders->hold(delivery("third"));
  orders->started(third, "third");
  EXPECT_THAT(held(), ElementsAre("third"));
  EXPECT_TRUE(read().held.at(0).running);
  orders->ended(first, false);
  orders->drop(first);
  EXPECT_FALSE(read().complete) << "one is left";
  orders->renew(second, {"second", 2, 0});
  orders->drop(second);
  EXPECT_TRUE(read().complete);
  orders->ended(third, false);
  orders->drop(third);
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(OwnLedgerTest, WhatAJobHeldBeforeGoesWithTheJob) {
  own_.begin();
  auto orders = job();
  const auto others = job();
  orders->hold(delivery("a"));
  others->hold(delivery("b"));
  come();
  orders.reset();
  EXPECT_FALSE(read().complete);
  others->drop(0);
  EXPECT_TRUE(read().complete);
}

TEST_F(OwnLedgerTest, AJobThatWentBeforeItCameLeavesNothing) {
  own_.begin();
  job()->hold(delivery("a"));
  come();
  EXPECT_TRUE(read().complete);
  EXPECT_THAT(read().queues, IsEmpty());
}

TEST_F(OwnLedgerTest, AJobOfSeveralQueuesKeepsThemApart) {
  own_.begin();
  const auto both = own_.open({isolation::ledger_job("both", "a"), isolation::ledger_job("both", "b")});
  const auto of_part = [](const std::string& id, std::uint16_t part) {
    queue::Delivery given = delivery(id);
    given.receipt.part = part;
    return given;
  };
  both->hold(of_part("early", 1));
  come();
  const HeldSlot first = both->hold(of_part("1", 0));
  const HeldSlot second = both->hold(of_part("2", 1));
  const HeldSlot long_one = both->hold(of_part(std::string(isolation::format::kIdLimit + 1, 'x'), 1));
  ASSERT_EQ(read().held.size(), 2U);
  for (const HeldMessage& held : read().held) {
    EXPECT_EQ(held.address.queue, held.receipt.id == "1" ? "a" : "b");
  }
  both->drop(long_one);
  EXPECT_FALSE(read().complete) << "the one of before is out";
  both->drop(0);
  EXPECT_TRUE(read().complete);
  both->drop(first);
  both->drop(second);
}

// What passes while the ledger comes is in it or counted, and never both or neither.
TEST_F(OwnLedgerTest, TheCountIsExactWheneverItComes) {
  own_.begin();
  const auto orders = job();
  std::atomic<bool> over{false};
  std::atomic<std::uint32_t> rounds{0};
  std::jthread flow([&] {
    std::vector<HeldSlot> slots;
    while (!over) {
      slots.push_back(orders->hold(delivery("m")));
      if (slots.size() > 20) {
        orders->drop(slots.front());
        slots.erase(slots.begin());
      }
      ++rounds;
    }
    for (const HeldSlot slot : slots) {
      orders->drop(slot);
    }
  });
  while (rounds < 1000) {
    std::this_thread::yield();
  }
  come();
  const std::uint32_t before = rounds;
  while (rounds < before + 1000) {
    std::this_thread::yield();
  }
  over = true;
  flow.join();
  EXPECT_TRUE(read().complete);
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(OwnLedgerTest, AHostThatDiesWhileItComesLeavesNoneThatTellsAll) {
  make_way();
  isolation::status_of([&] {
    const auto late =
        isolation::HostLedger::create(folder_.path(), {"host-a", "x"}, clock_, isolation::LedgerStart::late);
    ::raise(SIGKILL);
  });
  EXPECT_FALSE(read().complete);
}

TEST_F(OwnLedgerTest, WhatEndsTheHostWithoutALedgerIsNamedAllTheSame) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  isolation::status_of([&] {
    ::dup2(pipe[1], STDERR_FILENO);
    isolation::install_crash_handler(nullptr);
    const auto orders = job();
    orders->started(orders->hold(delivery("bomb-1")), "bomb-1");
    std::abort();
  });
  ::close(pipe[1]);
  std::array<char, 4096> text{};
  const ssize_t size = ::read(pipe[0], text.data(), text.size());
  ::close(pipe[0]);
  EXPECT_THAT(std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))),
              HasSubstr("in handler 'bomb' of /plugins/bomb.so, job 'orders', message bomb-1"));
}

}  // namespace
}  // namespace sluice::runtime
