#include "host/stores/dynamomq/dynamomq_queues.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/wake/announcement.hpp"
#include "host/stores/dynamomq/dynamomq_roles.hpp"

namespace sluice::queue::dynamomq {
namespace {

table::QueueTable locate(const DynamoMqOptions& options, const std::string& queue) {
  const auto found = options.queues.find(queue);
  const TableLocation location = found == options.queues.end() ? TableLocation{} : found->second;
  return {queue, location.table.empty() ? queue : location.table,
          location.index.empty() ? std::string(kDefaultIndexName) : location.index, options.region};
}

// Where hosts are woken, in one item of the table. Like notices, it has no `queue_type`, so that no index holds it, and
// none of DynamoMQ's attributes but `id`; each host writes one attribute of it.

/// What the names of the attributes begin with; then the host, S.
constexpr std::string_view kBell = "sluice_bell:";
/// DynamoDB may remove the item, where its TTL is on, so long after the last one has announced himself.
constexpr std::chrono::hours kItemLife(24);
/// Taken away at once.
constexpr std::size_t kMostOutdated = 20;

std::string bell_attribute(const std::string& host) { return std::string(kBell) + host; }

dynamo::Item bell_item_key() { return kNames.key(std::string(table::kNoticePrefix) + "bells"); }

/// Puts a host's announcement in, in the place of the one before, and takes the outdated ones away; refused where one
/// of them was replaced. The whole item comes back.
dynamo::ItemWrite announce_request(const std::string& table, const wake::Announcement& announcement,
                                   const dynamo::Item& outdated) {
  const auto expires =
      std::chrono::duration_cast<std::chrono::seconds>((announcement.at + kItemLife).time_since_epoch());
  dynamo::ItemWrite request{.kind = dynamo::ItemWrite::Kind::update, .table = table, .item = bell_item_key()};
  request.update = "SET #own = :own, #expires = :expires";
  request.names.emplace("#own", bell_attribute(announcement.host));
  request.names.emplace("#expires", attribute::kLoneExpires);
  request.values.emplace(":own", wake::encode(announcement));
  request.values.emplace(":expires", dynamo::AttributeValue::number(expires.count()));
  for (const auto& [name, value] : outdated) {
    if (name == bell_attribute(announcement.host)) {
      continue;  // its own from before the machine's clock was known to be wrong
    }
    const bool first = request.condition.empty();
    const std::string old = "old" + std::to_string(request.names.size());
    request.update += (first ? " REMOVE #" : ", #") + old;
    request.condition +=
        (first ? "" : " AND ") + ("(attribute_not_exists(#" + old + ") OR #" + old + " = :" + old + ")");
    request.names.emplace("#" + old, name);
    request.values.emplace(":" + old, value);
  }
  request.returning = true;
  return request;
}

/// Nothing where the attribute is none that a host has announced himself by.
std::optional<wake::Announcement> read_bell(const dynamo::Item::value_type& attribute) {
  const auto& [name, value] = attribute;
  const auto* text = name.starts_with(kBell) ? value.get<std::string>() : nullptr;
  return text == nullptr ? std::nullopt : wake::decode(name.substr(kBell.size()), *text);
}

/// What is worth nothing for long, as far as it is taken away at once.
dynamo::Item outdated_bells(const dynamo::Item& item, WallTime now) {
  dynamo::Item outdated;
  for (const auto& attribute : item) {
    const auto read = read_bell(attribute);
    if (read && now > read->at + kIntervalsToKeep * std::min(read->every, wake::kLongestInterval) &&
        outdated.size() < kMostOutdated) {
      outdated.insert(attribute);
    }
  }
  return outdated;
}

/// An announcement costs a write unit for each KB that all of them take, which are one item of the table; a look at
/// them at most half a read unit for each 4 KB.
class DynamoMqQueue final : public table::TableQueue {
 public:
  DynamoMqQueue(const table::StoreParts& parts, const table::QueueTable& place)
      : state_(make_dynamomq_layout(parts, place)) {}

  const table::RecordLayout& layout() const override { return *state_.layout; }
  std::unique_ptr<Source> source(Half half) override { return make_source(state_, half); }
  std::unique_ptr<Sender> sender() override { return make_sender(layout()); }
  std::unique_ptr<Operator> oper() override { return make_operator(state_); }

  std::string bell(Half half) const override { return wake::bell_name(place().table, half); }
  Result<std::vector<wake::Announcement>> bells(Deadline deadline) const override {
    const dynamo::GetItemRequest request{.table = place().table, .key = bell_item_key(), .consistent = false};
    SLUICE_TRY(found, table::checked(place(), parts().client.get_item(request, deadline)));
    std::vector<wake::Announcement> announcements;
    for (const auto& attribute : found->item) {
      if (auto read = read_bell(attribute)) {
        announcements.push_back(std::move(*read));
      }
    }
    return announcements;
  }
  Result<double> announce(const wake::Announcement& announcement, Deadline deadline) override {
    SLUICE_PASS_ON(parts().clock.be_sure(place(), table::kTimeTolerance, deadline));
    dynamo::Item outdated;
    {
      const MutexLock lock(mutex_);
      outdated = outdated_;
    }
    auto written = parts().client.write(announce_request(place().table, announcement, outdated), deadline);
    if (!written && written.error().kind == dynamo::ErrorKind::conditional_check_failed) {
      written = parts().client.write(announce_request(place().table, announcement, {}), deadline);  // somebody is back
    }
    SLUICE_TRY(done, table::checked(place(), std::move(written)));
    const MutexLock lock(mutex_);
    outdated_ = outdated_bells(done->item, parts().clock.wall_now());
    return done->capacity.write;
  }
  Result<void> withdraw(const std::string& host, Deadline deadline) override {
    dynamo::ItemWrite request{.kind = dynamo::ItemWrite::Kind::update, .table = place().table, .item = bell_item_key()};
    request.update = "REMOVE #own";
    request.condition = "attribute_exists(#own)";  // refused where there is no item
    request.names.emplace("#own", bell_attribute(host));
    const auto done = parts().client.write(request, deadline);
    if (!done && done.error().kind != dynamo::ErrorKind::conditional_check_failed) {
      return table::store_error(place(), done.error());
    }
    return {};
  }

 private:
  const table::StoreParts& parts() const { return layout().parts(); }
  const table::QueueTable& place() const { return layout().place(); }

  QueueState state_;  // synchronises itself
  Mutex mutex_;
  /// Announcements that are worth nothing any more, as the last answer told.
  dynamo::Item outdated_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

table::TableQueues::Make in_dynamomq_tables(const DynamoMqOptions& options) {
  return [options](const table::StoreParts& parts, const std::string& queue) {
    return std::make_unique<DynamoMqQueue>(parts, locate(options, queue));
  };
}

}  // namespace sluice::queue::dynamomq
