// How well a few short reads tell how many records lie in a partition.

#include "host/stores/leased/key_sketch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {
namespace {

using namespace std::chrono_literals;

const WallTime kStart{std::chrono::seconds(1'700'000'000)};
const WallTime kNow = kStart + 2h;
constexpr KeyNumber kAll = ~KeyNumber{0};

using Keys = std::vector<std::string>;

/// A partition of these keys, and what reading it took.
struct Partition {
  Keys keys;
  std::size_t page = SIZE_MAX;  ///< a read ends there, as at a megabyte
  std::size_t reads = 0;
  std::size_t records = 0;

  KeySketch::Answer read(const KeySketch::Order& order) {
    const auto from = std::lower_bound(keys.begin(), keys.end(), order.from);
    const auto to = std::max(from, std::upper_bound(keys.begin(), keys.end(), order.to));
    const std::size_t most = std::min(order.limit, page);
    KeySketch::Answer answer{.keys = Keys(from, to), .ended = static_cast<std::size_t>(to - from) < most};
    if (!order.forward) {
      std::reverse(answer.keys.begin(), answer.keys.end());
    }
    answer.keys.resize(std::min(answer.keys.size(), most));
    ++reads;
    records += answer.keys.size();
    return answer;
  }
  void draw(KeySketch& sketch) {
    for (auto orders = sketch.next(kNow); !orders.empty(); orders = sketch.next(kNow)) {
      std::vector<KeySketch::Answer> answers;
      answers.reserve(orders.size());
      for (const KeySketch::Order& order : orders) {
        answers.push_back(read(order));
      }
      sketch.done(answers);
    }
  }
};

class Backlog {
 public:
  explicit Backlog(std::uint64_t seed) : random_(seed) {}

  /// Evenly over a part of the two hours, in seconds.
  Backlog& add(std::size_t count, double from, double span, Priority priority = Priority::normal) {
    for (std::size_t i = 0; i < count; ++i) {
      keys_.push_back(sort_key_of(priority, at(from + span * chance()), random_));
    }
    return *this;
  }
  /// Sent together, so that their keys follow each other.
  Backlog& add_batch(std::size_t count, double when) {
    const std::uint64_t high = random_.next();
    const std::uint64_t low = random_.next() % 1'000'000;
    for (std::size_t i = 0; i < count; ++i) {
      keys_.push_back(sort_key_of(Priority::normal, at(when), high, low + 3 * i));
    }
    return *this;
  }
  double chance() { return static_cast<double>(random_.next() % 1'000'000) / 1e6; }
  Partition partition() {
    std::sort(keys_.begin(), keys_.end());
    return {.keys = keys_};
  }

 private:
  static WallTime at(double second) { return kStart + std::chrono::milliseconds(static_cast<int>(second * 1000)); }

  SeededRandom random_;
  Keys keys_;
};

struct Error {
  double least = 1e9;
  double most = 0;
};

/// Of thirty shards, and of each eight of them together.
std::pair<Error, Error> errors(const std::function<void(Backlog&)>& fill, std::size_t places) {
  Error each;
  Error together;
  double sum = 0;
  double truth = 0;
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    Backlog backlog(seed);
    fill(backlog);
    Partition partition = backlog.partition();
    KeySketch sketch(places);
    partition.draw(sketch);
    EXPECT_LE(partition.records, 2 * KeySketch::kEdge + (places + 4) * 2 * KeySketch::kSide);
    const double found = sketch.between(0, kAll).records;
    const auto there = static_cast<double>(partition.keys.size());
    each = {std::min(each.least, found / there), std::max(each.most, found / there)};
    sum += found;
    truth += there;
    if (seed % 8 == 0) {
      together = {std::min(together.least, sum / truth), std::max(together.most, sum / truth)};
      sum = truth = 0;
    }
  }
  return {each, together};
}

void expect_within(const Error& error, double least, double most, const char* what) {
  std::printf("%s: %.2f to %.2f times\n", what, error.least, error.most);
  EXPECT_GE(error.least, least) << what;
  EXPECT_LE(error.most, most) << what;
}

TEST(KeySketchTest, AFewRecordsAreReadAtOnceAndAllOfThem) {
  Partition partition = Backlog(1).add(20, 0, 3600).add(10, 0, 10, Priority::critical).partition();
  KeySketch sketch(12);
  EXPECT_FALSE(sketch.drawn());
  partition.draw(sketch);
  EXPECT_TRUE(sketch.exact());
  EXPECT_EQ(partition.reads, 1U);
  EXPECT_EQ(sketch.between(0, kAll).records, 30);
  EXPECT_EQ(sketch.between(0, kAll).unseen, 0);
  Partition nothing;
  KeySketch empty(12);
  nothing.draw(empty);
  EXPECT_TRUE(empty.exact());
  EXPECT_EQ(empty.between(0, kAll).records, 0);
}

TEST(KeySketchTest, AnEvenBacklogIsToldWithinAFifth) {
  for (const std::size_t count : {2'500U, 50'000U}) {
    const auto [each, together] = errors([count](Backlog& backlog) { backlog.add(count, 0, 3600); }, 12);
    expect_within(each, 0.8, 1.2, "even");
    expect_within(together, 0.9, 1.1, "even, eight shards");
  }
  const auto [at_once, all] = errors([](Backlog& backlog) { backlog.add(2'500, 5, 0); }, 12);
  expect_within(at_once, 0.8, 1.2, "all in one millisecond");
}

TEST(KeySketchTest, BurstsAreToldWithinAFactorOfTwo) {
  const auto [two, two_all] = errors([](Backlog& b) { b.add(2'500, 0, 1).add(2'500, 3'000, 1); }, 12);
  expect_within(two, 0.5, 2, "two bursts");
  const auto uneven = [](Backlog& b) {
    for (int burst = 0; burst < 10; ++burst) {
      const double when = 3600 * b.chance();
      b.add(static_cast<std::size_t>(100 + 900 * b.chance()), when, 5);
    }
  };
  expect_within(errors(uneven, 12).first, 0.5, 2, "ten uneven bursts");
  const auto minutes = [](Backlog& b) {
    for (int minute = 0; minute < 60; ++minute) {
      b.add(100, minute * 60, 1);
    }
  };
  expect_within(errors(minutes, 12).first, 0.5, 2, "a burst a minute");
  const auto batches = [](Backlog& b) {
    for (int batch = 0; batch < 200; ++batch) {
      b.add_batch(25, 3600 * b.chance());
    }
  };
  expect_within(errors(batches, 12).second, 0.5, 2, "batches of one millisecond, eight shards");
  expect_within(errors([](Backlog& b) { b.add(5'000, 0, 1800).add(5'000, 1800, 600); }, 12).first, 0.5, 2, "a rise");
}

TEST(KeySketchTest, PrioritiesAndWhatIsNotDueAreToldApart) {
  Partition partition =
      Backlog(3).add(1'000, 0, 3600, Priority::high).add(2'000, 0, 3600).add(3'000, 7'300, 3600).partition();
  KeySketch sketch(12);
  partition.draw(sketch);
  const auto key = [](Priority priority, WallTime due) { return number_of_key(last_sort_key(priority, due)); };
  const auto in = [&](Priority priority, WallTime from, WallTime to) {
    return sketch.between(key(priority, from), key(priority, to)).records;
  };
  EXPECT_NEAR(in(Priority::high, kStart - 1h, kNow), 1'000, 300);
  EXPECT_NEAR(in(Priority::normal, kStart - 1h, kNow), 2'000, 600);
  EXPECT_NEAR(in(Priority::normal, kNow, kNow + 5h), 3'000, 900);
  EXPECT_NEAR(in(Priority::normal, kStart + 30min, kNow), 1'000, 350) << "once the first half has been worked off";
}

TEST(KeySketchTest, WhatComesBehindIsAdded) {
  Backlog backlog(4);
  Partition partition = backlog.add(5'000, 0, 1800).partition();
  KeySketch sketch(12);
  partition.draw(sketch);
  const double before = sketch.between(0, kAll).records;
  const std::size_t reads = partition.reads;
  partition.keys = backlog.add(30, 1'801, 60).partition().keys;
  sketch.extend();
  partition.draw(sketch);
  EXPECT_NEAR(sketch.between(0, kAll).records, before + 30, 1);
  EXPECT_EQ(partition.reads, reads + 1);
  partition.keys = backlog.add(5'000, 1'900, 1700).partition().keys;
  sketch.extend();
  partition.draw(sketch);
  EXPECT_NEAR(sketch.between(0, kAll).records, 10'000, 2'000);
}

// Of messages close to 400 KB a page has room for two.
TEST(KeySketchTest, PagesOfTwoRecordsTellThatThereAreMore) {
  double found = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    Partition partition = Backlog(seed).add(1'000, 0, 3600).partition();
    partition.page = 2;
    KeySketch sketch(12);
    partition.draw(sketch);
    const auto all = sketch.between(0, kAll);
    EXPECT_FALSE(sketch.exact());
    EXPECT_GT(all.unseen, 100) << "seed " << seed;
    found += all.records / 16;
  }
  EXPECT_NEAR(found, 1'000, 500);
}

TEST(KeySketchTest, KeysAreNumbersOfTheSameOrder) {
  SeededRandom random(5);
  Keys keys;
  for (int i = 0; i < 200; ++i) {
    keys.push_back(sort_key_of(static_cast<Priority>(i % 4), kStart + std::chrono::milliseconds(i % 7), random));
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(key_of_number(number_of_key(keys[i])), keys[i]);
    EXPECT_TRUE(i == 0 || number_of_key(keys[i - 1]) < number_of_key(keys[i]));
  }
  EXPECT_EQ(number_of_key("not a key"), KeyNumber{0});
}

}  // namespace
}  // namespace sluice::queue::leased
