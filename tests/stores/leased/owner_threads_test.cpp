// Owners with threads of their own on the machine's clock: for the sanitizers, which see what no virtual time shows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::Completion;
using queue::CompletionAction;
using queue::Delivery;
using queue::SettleStatus;

constexpr std::uint32_t kShards = 6;
constexpr std::size_t kMessages = 300;
const queue::QueueAddress kAddress{kOwnersQueue, queue::Half::standard};

/// One process, as far as the table can tell.
class ThreadedHost {
 public:
  ThreadedHost(const std::string& name, model::Model& model, const Clock& clock, std::uint64_t seed)
      : clock_(clock),
        random_(seed),
        credentials_(name),
        transport_(model, clock),
        client_({{.region = "us-east-1"}}, transport_, credentials_, clock, random_) {
    queue::leased::LeasedOptions options{{.host = name, .region = "us-east-1"}};
    options.queues[kOwnersQueue] = {.table = kOwnersTable, .shards = kShards};
    options.lease = 300s;  // however slow the machine is
    queues_ = make_leased_queues(options, client_, clock_, random_);
  }

  std::unique_ptr<queue::Source> source() { return *queues_->open_source(kAddress); }
  std::unique_ptr<queue::Sender> sender() { return *queues_->open_sender(kOwnersQueue); }
  dynamo::Client& client() { return client_; }

 private:
  const Clock& clock_;
  SeededRandom random_;
  model::FixedCredentials credentials_;
  model::ModelTransport transport_;
  dynamo::Client client_;
  std::unique_ptr<queue::Queues> queues_;
};

/// What has been handled, and how often. Thread-safe.
class Handled {
 public:
  void done(const std::string& id) {
    const MutexLock lock(mutex_);
    ++times_[id];
    changed_.notify_all();
  }
  void lost() {
    const MutexLock lock(mutex_);
    ++lost_;
  }
  void ring() {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  }
  void wait_for(std::size_t messages) {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, SteadyTime::max(), [&]() SLUICE_REQUIRES(mutex_) { return times_.size() >= messages; });
  }
  /// False: everything is.
  bool pause(const Clock& clock) {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, clock.steady_now() + 10ms, [] { return false; });
    return times_.size() < kMessages;
  }
  std::map<std::string, int> times() const {
    const MutexLock lock(mutex_);
    return times_;
  }
  int losses() const {
    const MutexLock lock(mutex_);
    return lost_;
  }

 private:
  mutable Mutex mutex_;
  Condition changed_;
  std::map<std::string, int> times_ SLUICE_GUARDED_BY(mutex_);
  int lost_ SLUICE_GUARDED_BY(mutex_) = 0;
};

/// A started source with two threads that work on what it hands out.
class Workers {
 public:
  Workers(std::unique_ptr<queue::Source> source, Handled& handled, const Clock& clock)
      : source_(std::move(source)), handled_(handled), clock_(clock) {
    source_->start({.on_ready = [this] { handled_.ring(); },
                    .lost = [this](std::span<const queue::Receipt>) { handled_.lost(); }});
    for (int i = 0; i < 2; ++i) {
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
  }

  /// As a host drains: nothing more is claimed, what is out is settled, and the shards are handed over.
  void drain() {
    threads_.clear();
    source_->stop();
  }

 private:
  void work(const std::stop_token& stop) {
    do {
      const auto claimed = source_->claim({.max = 7, .visibility = 30s}, Deadline::after(clock_, 60s));
      if (!claimed) {
        ADD_FAILURE() << claimed.error().message();
        continue;
      }
      std::vector<queue::Receipt> receipts;
      for (const Delivery& delivery : claimed->deliveries) {
        receipts.push_back(delivery.receipt);
      }
      source_->extend(receipts, 30s, Deadline::after(clock_, 60s));
      for (const Delivery& delivery : claimed->deliveries) {
        const bool again = delivery.message.attempt == 1 && delivery.message.body.ends_with('7');
        const Completion completion{.receipt = delivery.receipt,
                                    .action = again ? CompletionAction::retry : CompletionAction::remove,
                                    .delay = again ? Duration(1ms) : Duration{}};
        const auto result = source_->settle(std::span(&completion, 1), Deadline::after(clock_, 60s)).front();
        EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
        if (!again) {
          handled_.done(delivery.message.id);
        }
      }
    } while (handled_.pause(clock_) && !stop.stop_requested());
  }

  const std::unique_ptr<queue::Source> source_;
  Handled& handled_;
  const Clock& clock_;
  std::vector<std::jthread> threads_;
};

void create_table(ThreadedHost& host, const Clock& clock) {
  dynamo::CreateTableRequest request;
  request.name = kOwnersTable;
  request.attribute_types = {{"p", "S"}, {"s", "S"}};
  request.hash_key = "p";
  request.range_key = "s";
  ASSERT_TRUE(host.client().create_table(request, Deadline::after(clock, 60s)));
}

// As where a job is given another name: the one stops on a thread of its own, and the other one starts.
TEST(OwnerThreads, ASourceThatStartsWhileTheLastOneOfItsHalfLeavesOwnsTheShards) {
  const SystemClock clock;
  model::Model model(clock, 1);
  ThreadedHost host("one", model, clock, 1);
  create_table(host, clock);
  const auto first = host.source();
  const auto next = host.source();
  first->start({});
  Handled leaving;
  std::atomic<int> refused = 0;
  // More than the client asks again for by itself.
  model.inject(
      model::Fault::refuse,
      [&](const std::string& operation, const std::string& body) {
        const bool hands_over = operation == "PutItem" && body.find("orders@") != std::string::npos;
        if (hands_over && ++refused == 1) {
          leaving.done("the first");
        }
        return hands_over;
      },
      8 * kShards);
  std::jthread leaves([&] { first->stop(); });
  leaving.wait_for(1);
  next->start({});
  leaves.join();
  const queue::NewMessage message{.body = "x"};
  host.sender()->send(std::span(&message, 1), Deadline::after(clock, 60s));
  std::size_t claimed = 0;
  for (const Deadline end = Deadline::after(clock, 10s); claimed == 0 && !end.passed(clock.steady_now());) {
    const auto some = next->claim({.max = 1, .visibility = 30s}, Deadline::after(clock, 60s));
    claimed = some ? some->deliveries.size() : 0;
    leaving.pause(clock);
  }
  EXPECT_EQ(claimed, 1U);
  next->stop();
}

// It waited until the one before had tried for ten seconds to hand the shards over that both of them work on.
TEST(OwnerThreads, ASourceThatStartsDoesNotWaitForTheLastOneToGiveUp) {
  const SystemClock clock;
  model::Model model(clock, 1);
  ThreadedHost host("one", model, clock, 1);
  create_table(host, clock);
  const auto first = host.source();
  const auto next = host.source();
  first->start({});
  Handled leaving;
  model.inject(
      model::Fault::refuse,
      [&](const std::string& operation, const std::string& body) {
        const bool hands_over = operation == "PutItem" && body.find("orders@") != std::string::npos;
        if (hands_over) {
          leaving.done("a try");
        }
        return hands_over;
      },
      std::numeric_limits<int>::max());
  std::jthread leaves([&] { first->stop(); });
  leaving.wait_for(1);
  const SteadyTime came = clock.steady_now();
  next->start({});
  EXPECT_LT(clock.steady_now() - came, 6s);
  leaves.join();
  model.clear_faults();
  const queue::NewMessage message{.body = "x"};
  host.sender()->send(std::span(&message, 1), Deadline::after(clock, 60s));
  std::size_t claimed = 0;
  for (const Deadline end = Deadline::after(clock, 10s); claimed == 0 && !end.passed(clock.steady_now());) {
    const auto some = next->claim({.max = 1, .visibility = 30s}, Deadline::after(clock, 60s));
    claimed = some ? some->deliveries.size() : 0;
    leaving.pause(clock);
  }
  EXPECT_EQ(claimed, 1U);
  next->stop();
}

TEST(OwnerThreads, SourcesOfTwoHostsShareTheWorkAndHandOverWhileItGoesOn) {
  const SystemClock clock;
  model::Model model(clock, 1);
  ThreadedHost one("one", model, clock, 1);
  ThreadedHost two("two", model, clock, 2);
  create_table(one, clock);
  Handled handled;
  Workers first(one.source(), handled, clock);
  Workers second(one.source(), handled, clock);
  Workers third(two.source(), handled, clock);
  const auto send = [&](ThreadedHost& from, std::size_t count) {
    const auto sender = from.sender();
    for (std::size_t i = 0; i < count; ++i) {
      const queue::NewMessage message{.body = std::to_string(i)};
      const auto sent = sender->send(std::span(&message, 1), Deadline::after(clock, 60s)).front();
      EXPECT_EQ(sent.status, queue::SendStatus::sent) << sent.error.message();
    }
  };
  std::jthread sends([&] { send(one, kMessages / 2); });
  send(two, kMessages / 4);
  sends.join();
  handled.wait_for(kMessages / 2);
  std::jthread drains([&] { first.drain(); });
  std::jthread drains_too([&] { second.drain(); });
  send(two, kMessages / 4);
  drains.join();
  drains_too.join();
  handled.wait_for(kMessages);
  third.drain();
  const auto times = handled.times();
  EXPECT_EQ(times.size(), kMessages);
  for (const auto& [id, often] : times) {
    EXPECT_EQ(often, 1) << id;
  }
  EXPECT_EQ(handled.losses(), 0);
  for (const dynamo::Item& item : model.items(kOwnersTable)) {
    const auto* owner = dynamo::find<std::string>(item, "o");
    EXPECT_TRUE(owner == nullptr || owner->empty()) << "nobody is left";
  }
}

}  // namespace
}  // namespace sluice::test
