#include "host/stores/sqlite/entry_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "host/stores/sqlite/hash_filter.hpp"

namespace sluice::queue::sqlite {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kHashes = std::int64_t{1} << 48;

std::vector<std::int64_t> seqs_of(const EntryTable& table, std::int64_t hash) {
  std::vector<std::int64_t> seqs;
  table.each(hash, [&seqs](std::int64_t seq) { seqs.push_back(seq); });
  return seqs;
}

TEST(EntryTable, HasNothingAtFirst) {
  EntryTable table;
  EXPECT_EQ(table.size(), 0U);
  EXPECT_THAT(seqs_of(table, 5), IsEmpty());
  EXPECT_FALSE(table.erase({5, 1}));
  table.erase_to(7);
  EXPECT_THAT(seqs_of(table, 5), IsEmpty());
}

TEST(EntryTable, KeepsSeveralOfOneHash) {
  EntryTable table;
  // These begin their search at one place.
  table.add({5, 1});
  table.add({5 + 64, 2});
  table.add({5, 3});
  table.add({5, 4});
  EXPECT_THAT(seqs_of(table, 5), UnorderedElementsAre(1, 3, 4));
  EXPECT_TRUE(table.erase({5, 1}));
  EXPECT_FALSE(table.erase({5, 1}));
  EXPECT_THAT(seqs_of(table, 5), UnorderedElementsAre(3, 4));
  EXPECT_THAT(seqs_of(table, 5 + 64), UnorderedElementsAre(2)) << "behind one that has gone";
  table.erase_to(3);
  EXPECT_THAT(seqs_of(table, 5), UnorderedElementsAre(4));
  EXPECT_THAT(seqs_of(table, 5 + 64), IsEmpty());
  table.clear();
  EXPECT_EQ(table.size(), 0U);
  EXPECT_THAT(seqs_of(table, 5), IsEmpty());
}

TEST(EntryTable, DoesWhatAMapDoes) {
  SeededRandom random(1);
  EntryTable table;
  std::multimap<std::int64_t, std::int64_t> map;
  for (std::int64_t seq = 1; seq < 20'000; ++seq) {
    const auto hash = static_cast<std::int64_t>(random.next() % 500) * 4096;
    table.add({hash, seq});
    map.emplace(hash, seq);
    if (seq % 3 == 0) {
      const auto gone = map.begin();
      EXPECT_TRUE(table.erase({gone->first, gone->second}));
      map.erase(gone);
    }
    if (seq % 5'000 == 0) {
      table.erase_to(seq - 2'000);
      std::erase_if(map, [seq](const auto& entry) { return entry.second <= seq - 2'000; });
    }
  }
  ASSERT_EQ(table.size(), map.size());
  std::multimap<std::int64_t, std::int64_t> found;
  table.all([&found](const IdEntry& entry) { found.emplace(entry.hash, entry.seq); });
  EXPECT_EQ(std::set(found.begin(), found.end()), std::set(map.begin(), map.end()));
  for (const auto& [hash, seq] : map) {
    EXPECT_THAT(seqs_of(table, hash), ::testing::Contains(seq));
  }
}

TEST(HashFilter, ForgetsNoneAndTakesFewForOthers) {
  SeededRandom random(2);
  const auto hash = [&random] { return static_cast<std::int64_t>(random.next() % kHashes); };
  HashFilter filter;
  EXPECT_TRUE(filter.full()) << "it has no room before it is told for how many";
  filter.reset(1);
  std::vector<std::int64_t> added;
  while (!filter.full()) {
    added.push_back(hash());
    filter.add(added.back());
  }
  EXPECT_GT(added.size(), 100'000U);
  std::size_t wrong = 0;
  for (const std::int64_t one : added) {
    EXPECT_TRUE(filter.may_have(one));
    wrong += filter.may_have(hash()) ? 1 : 0;
  }
  EXPECT_LT(wrong, added.size() / 100);
  filter.reset(1);
  EXPECT_FALSE(filter.may_have(added.front()));
}

}  // namespace
}  // namespace sluice::queue::sqlite
