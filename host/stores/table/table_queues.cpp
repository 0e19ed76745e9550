#include "host/stores/table/table_queues.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ranges.hpp"
#include "base/timestamp.hpp"
#include "dynamo/client.hpp"
#include "dynamo/item_reading.hpp"
#include "host/queue/notice_board.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::table {
namespace {

// A look at the steering of a whole fleet is to stay cheap.
constexpr std::size_t kMostBytes = std::size_t{16} * 1024;
constexpr std::string_view kHostPrefix = "host/";

std::string id_of(Topic topic, const std::string& key) {
  const std::string prefix(kNoticePrefix);
  switch (topic) {
    case Topic::hosts:
      return prefix + std::string(kHostPrefix) + key;
    case Topic::steering:
      return prefix + "steering";
    case Topic::schedules:
      return prefix + "schedule/" + key;
    case Topic::audit:
      break;
  }

  return prefix + "audit" + (key.empty() ? "" : "/" + key);
}

/// For people.
std::string name_of(const QueueTable& place) {
  return "table '" + place.table + "'" + (place.region.empty() ? "" : " in " + place.region);
}

/// Of the item that names the hosts.
std::string roll_id() { return std::string(kNoticePrefix) + "hosts"; }

Notice notice_of(std::string key, const dynamo::Item& item) {
  return {.key = std::move(key),
          .text = dynamo::text_of(item, attribute::kNoticeText),
          .version = dynamo::whole_number(item, attribute::kNoticeVersion).value_or(0),
          .posted_at = parse_timestamp(dynamo::text_of(item, attribute::kNoticePostedAt)).value_or(WallTime{})};
}

/// The notice board of one table: an item for each notice, and one that names the hosts' items, which no index finds.
/// A look at the steering costs half a read unit for each 4 KB, a post one write unit for each KB.
class TableBoard final : public NoticeBoard {
 public:
  /// The layout outlives the board.
  explicit TableBoard(const RecordLayout& layout)
      : parts_(layout.parts()),
        place_(layout.place()),
        names_(layout.names()),
        traits_{.place = name_of(place_), .tells = false, .billed = true, .most_bytes = kMostBytes} {}

  const BoardTraits& traits() const override { return traits_; }
  WallTime now() const override { return parts_.clock.wall_now(); }

  Result<Notice> read(Topic topic, const std::string& key, Deadline deadline) override {
    const bool consistent = topic == Topic::audit || is_limit(topic, key);
    SLUICE_TRY(found, item(id_of(topic, key), consistent, deadline));
    return notice_of(key, *found);
  }
  Result<std::vector<Notice>> list(Topic topic, Deadline deadline) override {
    if (topic == Topic::hosts) {
      return roll_call(deadline);
    }
    SLUICE_TRY(found, item(id_of(topic, {}), true, deadline));
    std::vector<Notice> all;
    if (!found->empty()) {
      all.push_back(notice_of({}, *found));
    }
    return all;
  }

  Result<std::int64_t> post(Topic topic, const Notice& notice, Deadline deadline) override {
    if (notice.text.size() > kMostBytes) {
      return Error(ErrorCode::invalid, "a notice in " + traits_.place + " has at most " + std::to_string(kMostBytes) +
                                           " bytes, this one has " + std::to_string(notice.text.size()));
    }
    if (topic == Topic::hosts && notice.version == 0) {
      // First, so that no item is left that nobody finds.
      SLUICE_PASS_ON(change_roll(Roll::enter, notice.key, deadline));
    }
    dynamo::ItemWrite request{.table = place_.table, .item = names_.key(id_of(topic, notice.key))};
    request.item.emplace(attribute::kNoticeText, notice.text);
    request.item.emplace(attribute::kNoticeVersion, dynamo::AttributeValue::number(notice.version + 1));
    request.item.emplace(attribute::kNoticePostedAt, format_timestamp(now()));
    Placeholders spelt(request);
    request.condition = notice.version == 0 ? spelt.absent(names_.hash) : is_of_version(spelt, notice.version);
    SLUICE_PASS_ON(write(request, deadline));
    return notice.version + 1;
  }

  Result<void> take_down(Topic topic, const std::string& key, std::int64_t version, Deadline deadline) override {
    dynamo::ItemWrite request{
        .kind = dynamo::ItemWrite::Kind::remove, .table = place_.table, .item = names_.key(id_of(topic, key))};
    Placeholders spelt(request);
    request.condition = spelt.absent(names_.hash) + " OR " + is_of_version(spelt, version);
    SLUICE_PASS_ON(write(request, deadline));
    return topic == Topic::hosts ? change_roll(Roll::strike, key, deadline) : Result<void>();
  }

  /// DynamoDB tells nobody.
  std::unique_ptr<Watch> watch(std::function<void()>) override { return nullptr; }

 private:
  enum class Roll { enter, strike };

  static std::string is_of_version(Placeholders& spelt, std::int64_t version) {
    return spelt.equal(attribute::kNoticeVersion, dynamo::AttributeValue::number(version));
  }

  Result<dynamo::Item> item(const std::string& id, bool consistent, Deadline deadline) const {
    const dynamo::GetItemRequest request{.table = place_.table, .key = names_.key(id), .consistent = consistent};
    SLUICE_TRY(found, checked(place_, parts_.client.get_item(request, deadline)));
    return std::move(found->item);
  }
  Result<std::vector<Notice>> roll_call(Deadline deadline) const {
    SLUICE_TRY(roll, item(roll_id(), true, deadline));
    std::vector<Notice> all;
    const auto* keys = dynamo::find<dynamo::StringSet>(*roll, attribute::kNoticeKeys);
    if (keys == nullptr) {
      return all;
    }
    const auto wanted =
        mapped(keys->values, [&](const std::string& key) { return names_.key(id_of(Topic::hosts, key)); });
    const std::size_t prefix = id_of(Topic::hosts, {}).size();
    SLUICE_TRY(items, checked(place_, read_items(parts_.client, place_.table, wanted, deadline)));
    for (const dynamo::Item& item : *items) {
      if (const std::string id = names_.id_of(item); id.size() >= prefix) {
        all.push_back(notice_of(id.substr(prefix), item));
      }
    }
    std::sort(all.begin(), all.end(), [](const Notice& a, const Notice& b) { return a.key < b.key; });
    return all;
  }

  Result<void> change_roll(Roll change, const std::string& key, Deadline deadline) const {
    dynamo::ItemWrite request{
        .kind = dynamo::ItemWrite::Kind::update, .table = place_.table, .item = names_.key(roll_id())};
    request.update = (change == Roll::enter ? "ADD " : "DELETE ") +
                     Placeholders(request).compared(attribute::kNoticeKeys, " ", dynamo::StringSet{{key}});
    return write(request, deadline);
  }

  Result<void> write(const dynamo::ItemWrite& request, Deadline deadline) const {
    const auto done = parts_.client.write(request, deadline);
    if (!done && done.error().kind == dynamo::ErrorKind::conditional_check_failed) {
      return Error(ErrorCode::conflict,
                   "somebody else changed the notice in " + traits_.place + " meanwhile; read it again");
    }
    return done ? Result<void>() : store_error(place_, done.error());
  }

  const StoreParts& parts_;
  const QueueTable& place_;
  const LayoutNames& names_;
  const BoardTraits traits_;
};

}  // namespace

/// Where the hosts of one table announce how they are woken.
class TableQueues::WakePlace final : public wake::WakePlace {
 public:
  WakePlace(TableQueues& queues, TableQueue& queue)
      : queues_(queues), queue_(queue), name_(name_of(queue.layout().place())) {}

  const std::string& name() const override { return name_; }
  std::string bell(Half half) const override { return queue_.bell(half); }
  WallTime now() const override { return queues_.clock_.wall_now(); }
  Result<double> announce(const wake::Announcement& announcement, Deadline deadline) override {
    if (wake::Ringer* const ringer = queues_.ringer_of(queue_)) {
      ringer->leave_out(queue_.announced_as(announcement.host));
    }
    return queue_.announce(announcement, deadline);
  }
  Result<void> withdraw(const std::string& host, Deadline deadline) override { return queue_.withdraw(host, deadline); }
  Result<std::vector<wake::Announcement>> read(Deadline deadline) override { return queue_.bells(deadline); }
  void ring_here(Half half) override { queues_.doorbell_.ring_here({queue_.layout().place().queue, half}); }

 private:
  TableQueues& queues_;
  TableQueue& queue_;
  const std::string name_;
};

TableQueues::TableQueues(const TableOptions& options, dynamo::Client& client, const Clock& clock, Random& random,
                         Make make)
    : ring_(options.ring),
      nonces_(options.host, random),
      clock_(client, clock, options.warn),
      runner_(client, clock, random, options.warn),
      doorbell_([this](const QueueAddress& address) {
        TableQueue& rung = queue(address.queue);
        if (wake::Ringer* const ringer = ringer_of(rung)) {
          ringer->rang(rung.bell(address.half));
        }
      }),
      layouts_([this](const std::string& name) -> const RecordLayout& { return queue(name).layout(); }),
      parts_{client, clock_, runner_, nonces_, random, doorbell_, layouts_},
      make_(std::move(make)) {}

TableQueue& TableQueues::queue(const std::string& name) {
  const MutexLock lock(mutex_);
  auto& known = queues_[name];
  if (!known) {
    known = make_(parts_, name);
  }
  return *known;
}

wake::Ringer* TableQueues::ringer_of(TableQueue& queue) {
  if (!ring_) {
    return nullptr;
  }
  const MutexLock lock(mutex_);
  auto& ringer = ringers_[queue.layout().place().table];
  if (!ringer) {
    ringer = std::make_unique<wake::Ringer>([&queue](Deadline deadline) { return queue.bells(deadline); }, *ring_,
                                            clock_, parts_.random);
  }
  return ringer.get();
}

Result<std::unique_ptr<NoticeBoard>> TableQueues::open_board(const std::string& name) {
  return std::unique_ptr<NoticeBoard>(std::make_unique<TableBoard>(queue(name).layout()));
}

Result<std::unique_ptr<wake::WakePlace>> TableQueues::open_wake_place(const std::string& name) {
  return std::unique_ptr<wake::WakePlace>(std::make_unique<WakePlace>(*this, queue(name)));
}

}  // namespace sluice::queue::table
