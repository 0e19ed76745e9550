#include "host/stores/outbox/dynamodb/locks.hpp"

#include <algorithm>
#include <charconv>

#include "host/stores/outbox/dynamodb/marks.hpp"

namespace sluice::queue::outbox {
namespace {

using dynamo::AttributeValue;

constexpr std::string_view kCounter = "counter";
constexpr std::string_view kLease = "lease_ms";
constexpr std::string_view kBuckets = "buckets";
constexpr std::string_view kOwner = "owner";
constexpr std::string_view kEpoch = "epoch";

constexpr int kLeasesUntilBuried = 20;
constexpr Duration kPatienceAtTheEnd = std::chrono::seconds(1);

std::int64_t number_of(const dynamo::Item& item, std::string_view name) {
  const auto* number = dynamo::find<dynamo::Number>(item, name);
  std::int64_t value = 0;
  if (number != nullptr) {
    std::from_chars(number->text.data(), number->text.data() + number->text.size(), value);
  }
  return value;
}

// A name for a session that nobody else has: 52 bits, never zero.
std::int64_t fresh_name(Random& random) { return static_cast<std::int64_t>(random.next() >> 12U) | 1; }

}  // namespace

DynamoDbLocks::DynamoDbLocks(OutboxPlace& place)
    : place_(place),
      member_(fresh_name(place.random())),
      lease_(place.settings().connect.lease),
      members_(place.settings().connect.lease) {}

DynamoDbLocks::~DynamoDbLocks() {
  if (counter_ == 0) {
    return;
  }
  dynamo::DeleteItemRequest removal;
  removal.table = place_.table().table;
  removal.key = key_of(place_.columns(), members_partition(), member_);
  const auto deadline = Deadline::at(place_.steady_now() + kPatienceAtTheEnd);
  (void)place_.client().delete_item(removal, deadline);  // otherwise the others bury it
}

Result<Members> DynamoDbLocks::join(const LockSpace& space, Deadline deadline) {
  space_ = space;
  const SteadyTime began = place_.steady_now();
  if (const auto written = announce(deadline); !written) {
    return written.error();
  }
  (void)lease_.renewed(began, place_.steady_now());  // the first one: there is nothing that could have been lost
  return look(deadline);
}

Result<Members> DynamoDbLocks::beat(Deadline deadline) {
  const SteadyTime began = place_.steady_now();
  if (const auto written = announce(deadline); !written) {
    return written.error();
  }
  if (!lease_.renewed(began, place_.steady_now())) {
    lease_.gone();
    return still_ours().error();
  }
  return look(deadline);
}

Result<void> DynamoDbLocks::announce(Deadline deadline) {
  dynamo::PutItemRequest request;
  request.table = place_.table().table;
  request.item = key_of(place_.columns(), members_partition(), member_);
  request.item.emplace(kCounter, AttributeValue::number(++counter_));
  request.item.emplace(
      kLease, AttributeValue::number(std::chrono::duration_cast<std::chrono::milliseconds>(lease_.length()).count()));
  request.item.emplace(kBuckets, AttributeValue::number(space_.buckets));
  const auto written = place_.client().put_item(request, deadline);
  return written ? Result<void>() : Result<void>(place_.error_of(written.error()));
}

Result<Members> DynamoDbLocks::look(Deadline deadline) {
  const auto items = read(members_partition(), deadline);
  if (!items) {
    return items.error();
  }
  const SteadyTime now = place_.steady_now();
  std::vector<Heartbeat> beats;
  for (const auto& [member, item] : *items) {
    beats.push_back({.host = std::to_string(member),
                     .counter = number_of(item, kCounter),
                     .lease = std::chrono::milliseconds(number_of(item, kLease))});
  }
  members_.saw(beats, now);
  Members members{.count = 0, .other_buckets = 0};
  for (const auto& [member, item] : *items) {
    if (members_.alive(std::to_string(member), now)) {
      ++members.count;
      const auto buckets = static_cast<std::uint32_t>(number_of(item, kBuckets));
      members.other_buckets = buckets == space_.buckets ? members.other_buckets : buckets;
    }
  }
  members.count = std::max(members.count, std::uint32_t{1});
  bury(*items, deadline);
  return members;
}

Result<std::map<std::int64_t, dynamo::Item>> DynamoDbLocks::read(const std::string& partition, Deadline deadline) {
  dynamo::QueryRequest request;
  request.table = place_.table().table;
  request.key_condition = "#b = :b";
  request.names.emplace("#b", kBucket);
  request.values.emplace(":b", partition);
  request.consistent = true;
  std::map<std::int64_t, dynamo::Item> items;
  do {
    auto page = place_.client().query(request, deadline);
    if (!page) {
      return place_.error_of(page.error());
    }
    for (dynamo::Item& item : page->items) {
      if (const auto id = place_.rows().id_of(item)) {
        items.emplace(*id, std::move(item));
      }
    }
    request.exclusive_start_key = std::move(page->last_evaluated_key);
  } while (!request.exclusive_start_key.empty());
  return items;
}

// Heartbeats of the dead would stay for ever. It does no harm when a removal fails, and none when it was wrong: who
// lives writes the whole item again.
void DynamoDbLocks::bury(const std::map<std::int64_t, dynamo::Item>& members, Deadline deadline) {
  const SteadyTime long_ago = place_.steady_now() - kLeasesUntilBuried * lease_.length();
  std::vector<dynamo::ItemWrite> writes;
  for (const auto& [member, item] : members) {
    if (member != member_ && members_.dead_since(std::to_string(member), long_ago)) {
      dynamo::DeleteItemRequest removal;
      removal.table = place_.table().table;
      removal.key = key_of(place_.columns(), members_partition(), member);
      removal.condition = "#c = :c";
      removal.names.emplace("#c", kCounter);
      removal.values.emplace(":c", AttributeValue::number(number_of(item, kCounter)));
      writes.emplace_back(std::move(removal));
    }
  }
  if (!writes.empty()) {
    (void)place_.client().write_each(writes, deadline);
  }
}

Result<std::vector<std::uint32_t>> DynamoDbLocks::lock(std::span<const std::uint32_t> buckets, Deadline deadline) {
  const auto items = read(locks_partition(), deadline);
  if (!items) {
    return items.error();
  }
  const SteadyTime now = place_.steady_now();
  std::vector<std::pair<std::uint32_t, Lock>> wanted;
  std::vector<dynamo::ItemWrite> writes;
  for (const std::uint32_t bucket : buckets) {
    const auto found = items->find(bucket);
    Lock lock;
    if (found != items->end()) {
      lock = {number_of(found->second, kOwner), number_of(found->second, kEpoch)};
    }
    if (lock.owner != 0) {
      members_.met(std::to_string(lock.owner), now);
    }
    if (lock.owner == 0 || !members_.alive(std::to_string(lock.owner), now)) {
      writes.emplace_back(change_of_hands(bucket, lock, member_));
      wanted.emplace_back(bucket, lock);
    }
  }
  std::vector<std::uint32_t> got;
  const auto results = place_.client().write_each(writes, deadline);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) {
      held_[wanted[i].first] = {member_, wanted[i].second.epoch + 1};
      got.push_back(wanted[i].first);
    } else if (results[i].error().kind != dynamo::ErrorKind::conditional_check_failed) {
      return place_.error_of(results[i].error());  // the session is over, and its locks with its lease
    }
  }
  if (const auto ours = still_ours(); !ours) {
    return ours.error();
  }
  return got;
}

dynamo::PutItemRequest DynamoDbLocks::change_of_hands(std::uint32_t bucket, const Lock& before,
                                                      std::int64_t owner) const {
  dynamo::PutItemRequest request;
  request.table = place_.table().table;
  request.item = key_of(place_.columns(), locks_partition(), bucket);
  request.item.emplace(kOwner, AttributeValue::number(owner));
  request.item.emplace(kEpoch, AttributeValue::number(before.epoch + 1));
  if (before.epoch == 0) {
    request.condition = "attribute_not_exists(#e)";
  } else {
    request.condition = "#e = :e";
    request.values.emplace(":e", AttributeValue::number(before.epoch));
  }
  request.names.emplace("#e", kEpoch);
  return request;
}

Result<void> DynamoDbLocks::unlock(std::span<const std::uint32_t> buckets, Deadline deadline) {
  std::vector<dynamo::ItemWrite> writes;
  for (const std::uint32_t bucket : buckets) {
    if (const auto held = held_.find(bucket); held != held_.end()) {
      writes.emplace_back(change_of_hands(bucket, held->second, 0));
      held_.erase(held);
    }
  }
  for (const auto& result : place_.client().write_each(writes, deadline)) {
    if (!result && result.error().kind != dynamo::ErrorKind::conditional_check_failed) {
      return place_.error_of(result.error());
    }
  }
  return {};
}

Result<std::vector<MarkStatus>> DynamoDbLocks::mark(std::span<const Mark> marks, Deadline deadline) {
  const bool joined = counter_ != 0;
  if (const auto ours = still_ours(); joined && !ours) {
    return ours.error();
  }
  return Marks(place_).write(marks, deadline);
}

Result<void> DynamoDbLocks::still_ours() const {
  if (lease_.holds(place_.steady_now())) {
    return {};
  }
  return Error(ErrorCode::unavailable, "outbox '" + place_.settings().name +
                                           "': the lease ended before it could be renewed; what it held is free for "
                                           "others");
}

}  // namespace sluice::queue::outbox
