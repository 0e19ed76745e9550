#include "host/stores/leased/dead_letter_count.hpp"

#include <algorithm>

#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {
namespace {

// A shard is looked at first when the start is over.
constexpr Duration kFirst = std::chrono::seconds(3);
constexpr Duration kSoon = std::chrono::seconds(2);
constexpr Duration kFailurePause = std::chrono::seconds(5);

}  // namespace

void DeadLetterCount::gained(std::uint32_t shard, SteadyTime now) {
  shards_.insert_or_assign(shard, Shard{.number = ++gained_, .due_at = now + kFirst});
}

void DeadLetterCount::dead_letter(std::uint32_t shard, SteadyTime now) {
  if (const auto found = shards_.find(shard); found != shards_.end() && found->second.looked_at) {
    const SteadyTime soonest = *found->second.looked_at + kFailurePause;
    found->second.due_at = std::min(found->second.due_at, std::max(now + kSoon, soonest));
  }
}

std::vector<DeadLetterCount::Look> DeadLetterCount::next(SteadyTime now) {
  std::vector<Look> looks;
  for (const auto& [shard, of] : shards_) {
    if (now < of.due_at || looks.size() == kMostReads) {
      continue;
    }
    dynamo::QueryRequest query;
    query.table = table_;
    query.key_condition = "#p = :p";
    query.projection = "#s";
    query.names = {{"#p", std::string(attribute::kPartition)}, {"#s", std::string(attribute::kSort)}};
    query.values.emplace(":p", partition_of(queue_, Half::dlq, shard));
    query.limit = static_cast<std::int64_t>(kMostOfAShard);
    looks.push_back({.shard = shard, .number = of.number, .query = std::move(query)});
  }
  return looks;
}

void DeadLetterCount::done(const Look& look, const std::optional<dynamo::Page>& page, SteadyTime began) {
  const auto found = shards_.find(look.shard);
  if (found == shards_.end() || found->second.number != look.number) {
    return;
  }
  Shard& of = found->second;
  if (!page) {
    of.due_at = began + kFailurePause;
    return;
  }
  of.records = page->items.size();
  of.more = !page->last_evaluated_key.empty();
  of.looked_at = began;
  of.due_at = began + kPause;
}

void DeadLetterCount::add_to(OwnerFigures& figures, SteadyTime now) const {
  for (const auto& [shard, of] : shards_) {
    if (!of.looked_at) {
      continue;
    }
    figures.dead.records += of.records;
    figures.dead.looked_ago = std::max<Duration>(figures.dead.looked_ago, now - *of.looked_at);
    figures.dead.more += of.more ? 1U : 0U;
    ++figures.dead.shards;
  }
}

}  // namespace sluice::queue::leased
