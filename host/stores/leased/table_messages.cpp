#include "host/stores/leased/table_messages.hpp"

#include <memory>
#include <string>
#include <utility>

#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {

owned::Found found_of(dynamo::Item item) {
  constexpr std::size_t kBesideItsValues = 60;  // in a table, about
  return {.sort = dynamo::text_of(item, attribute::kSort),
          .state = state_of(item),
          .bytes = kBesideItsValues + table::item_bytes(item),
          .writes_claim = dynamo::text_of(item, attribute::kUniqueToken).ends_with(kFreedAtClaim),
          .odd = oddity_of(item),
          .record = std::make_shared<const dynamo::Item>(std::move(item))};
}

const dynamo::Item& item_of(const owned::Entry& entry) { return *static_cast<const dynamo::Item*>(entry.record.get()); }

// What was sent before and what after goes by the time; where it is not to be had, nothing can be read either.
void TableMessages::order_wanted(Order order, Deadline deadline) {
  static_cast<void>(parts_.clock.be_sure(place_, table::kTimeTolerance, deadline));
  if (order == Order::group && !marked_ordered_ && parts_.client.write(ordered_mark(place_, half_), deadline)) {
    marked_ordered_ = true;
  }
}

std::vector<Result<owned::MessageRecords::Page>> TableMessages::read(std::span<const Query> queries,
                                                                     Deadline deadline) {
  std::vector<dynamo::QueryRequest> requests;
  for (const auto& [shard, order] : queries) {
    auto& request = requests.emplace_back(
        partition_query(place_.table, partition_of(place_.queue, half_, shard), order.consistent));
    limit_range(request, order.from, order.to);
    if (order.limit > 0) {
      request.limit = static_cast<std::int64_t>(order.limit);
    }
  }
  std::vector<Result<Page>> pages;
  for (auto& answer : parts_.client.query_each(requests, deadline)) {
    if (!answer) {
      pages.emplace_back(table::store_error(place_, answer.error()));
      continue;
    }
    Page page{.stopped_at = dynamo::text_of(answer->last_evaluated_key, attribute::kSort)};
    for (dynamo::Item& item : answer->items) {
      page.found.push_back(found_of(std::move(item)));
    }
    pages.emplace_back(std::move(page));
  }
  return pages;
}

Result<std::set<std::string>> TableMessages::read_holds(std::uint32_t shard, Deadline deadline) {
  const std::string partition = hold_partition_of(place_.queue, shard);
  SLUICE_TRY(items, table::checked(place_, read_partition(parts_.client, place_.table, partition, true, deadline)));
  std::set<std::string> groups;
  for (const dynamo::Item& item : *items) {
    if (const auto* group = dynamo::find<std::string>(item, attribute::kGroup)) {
      groups.insert(*group);
    }
  }
  return groups;
}

Message TableMessages::open(const owned::Entry& entry) {
  Message message = decode_record(item_of(entry)).message;
  message.checkpoint = entry.state.checkpoint;  // also of an attempt that it came back from
  return message;
}

std::vector<bool> TableMessages::write_claims(std::span<const ClaimWrite> claims, Deadline deadline) {
  return LeasedWriter(queue_, half_).write_claims(claims, deadline);
}

std::vector<SettleResult> TableMessages::settle(std::span<const Completion> completions,
                                                std::span<const owned::Out> outs, Deadline deadline) {
  return LeasedWriter(queue_, half_, strict_fence_).settle(completions, outs, deadline);
}

std::vector<std::optional<owned::MessageRecords::Count>> TableMessages::count_dead(
    std::span<const std::uint32_t> shards, std::size_t most, Deadline deadline) {
  std::vector<dynamo::QueryRequest> queries;
  for (const std::uint32_t shard : shards) {
    auto& query =
        queries.emplace_back(partition_query(place_.table, partition_of(place_.queue, Half::dlq, shard), false));
    query.projection = "#s";
    query.names.emplace("#s", std::string(attribute::kSort));
    query.limit = static_cast<std::int64_t>(most);
  }
  const auto pages = parts_.client.query_each(queries, deadline);
  const Shards known = queue_.shards.last();
  std::vector<std::optional<Count>> counts(shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (pages[i]) {
      // What lies in shards that were given up nobody counts: the last one that is in use stands for them.
      const bool beside = known.most_ever > known.count && shards[i] + 1 == known.count;
      counts[i] = Count{pages[i]->items.size(), beside || !pages[i]->last_evaluated_key.empty()};
    }
  }
  return counts;
}

}  // namespace sluice::queue::leased
