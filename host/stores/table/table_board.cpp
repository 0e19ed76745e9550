#include "host/stores/table/table_board.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/metadata_items.hpp"

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
  return prefix + "audit";
}

/// Of the item that names the hosts.
std::string roll_id() { return std::string(kNoticePrefix) + "hosts"; }

Notice notice_of(std::string key, const dynamo::Item& item) {
  return {.key = std::move(key),
          .text = dynamo::text_of(item, attribute::kNoticeText),
          .version = dynamo::whole_number(item, attribute::kNoticeVersion).value_or(0),
          .posted_at = parse_timestamp(dynamo::text_of(item, attribute::kNoticePostedAt)).value_or(WallTime{})};
}

}  // namespace

TableBoard::TableBoard(const StoreParts& parts, QueueTable place, const LoneNames& names)
    : parts_(parts),
      place_(std::move(place)),
      names_(names),
      traits_{.place = "table '" + place_.table + "'" + (place_.region.empty() ? "" : " in " + place_.region),
              .tells = false,
              .billed = true,
              .most_bytes = kMostBytes} {}

Error TableBoard::failure(const dynamo::Error& error) const {
  if (error.kind == dynamo::ErrorKind::conditional_check_failed) {
    return {ErrorCode::conflict, "somebody else changed the notice in " + traits_.place + " meanwhile; read it again"};
  }
  return store_error(place_, error);
}

Result<dynamo::Item> TableBoard::item(const std::string& id, bool consistent, Deadline deadline) const {
  auto found =
      parts_.client.get_item({.table = place_.table, .key = names_.key(id), .consistent = consistent}, deadline);
  if (!found) {
    return failure(found.error());
  }
  return std::move(found->item);
}

Result<Notice> TableBoard::read(Topic topic, const std::string& key, Deadline deadline) {
  SLUICE_TRY(found, item(id_of(topic, key), false, deadline));
  return notice_of(key, *found);
}

Result<std::vector<Notice>> TableBoard::list(Topic topic, Deadline deadline) {
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

Result<std::vector<Notice>> TableBoard::roll_call(Deadline deadline) const {
  SLUICE_TRY(roll, item(roll_id(), true, deadline));
  std::vector<Notice> all;
  const auto* keys = dynamo::find<dynamo::StringSet>(*roll, attribute::kNoticeKeys);
  if (keys == nullptr) {
    return all;
  }
  std::vector<dynamo::Item> wanted;
  for (const std::string& key : keys->values) {
    wanted.push_back(names_.key(id_of(Topic::hosts, key)));
  }
  const std::size_t prefix = id_of(Topic::hosts, {}).size();
  const auto items = read_items(parts_.client, place_.table, wanted, deadline);
  if (!items) {
    return failure(items.error());
  }
  for (const dynamo::Item& item : *items) {
    if (const std::string id = names_.id_of(item); id.size() >= prefix) {
      all.push_back(notice_of(id.substr(prefix), item));
    }
  }
  std::sort(all.begin(), all.end(), [](const Notice& a, const Notice& b) { return a.key < b.key; });
  return all;
}

Result<void> TableBoard::change_roll(Roll change, const std::string& key, Deadline deadline) const {
  dynamo::UpdateItemRequest request{.table = place_.table, .key = names_.key(roll_id())};
  request.update = change == Roll::enter ? "ADD #keys :key" : "DELETE #keys :key";
  request.names.emplace("#keys", attribute::kNoticeKeys);
  request.values.emplace(":key", dynamo::StringSet{{key}});
  if (auto done = parts_.client.update_item(request, deadline); !done) {
    return failure(done.error());
  }
  return {};
}

Result<std::int64_t> TableBoard::post(Topic topic, const Notice& notice, Deadline deadline) {
  if (notice.text.size() > kMostBytes) {
    return Error(ErrorCode::invalid, "a notice in " + traits_.place + " has at most " + std::to_string(kMostBytes) +
                                         " bytes, this one has " + std::to_string(notice.text.size()));
  }
  if (topic == Topic::hosts && notice.version == 0) {
    // First, so that no item is left that nobody finds.
    SLUICE_PASS_ON(change_roll(Roll::enter, notice.key, deadline));
  }
  dynamo::PutItemRequest request{.table = place_.table, .item = names_.key(id_of(topic, notice.key))};
  request.item.emplace(attribute::kNoticeText, notice.text);
  request.item.emplace(attribute::kNoticeVersion, dynamo::AttributeValue::number(notice.version + 1));
  request.item.emplace(attribute::kNoticePostedAt, format_timestamp(now()));
  if (notice.version == 0) {
    request.condition = "attribute_not_exists(#id)";
    request.names.emplace("#id", names_.hash);
  } else {
    request.condition = "#version = :before";
    request.names.emplace("#version", attribute::kNoticeVersion);
    request.values.emplace(":before", dynamo::AttributeValue::number(notice.version));
  }
  if (auto done = parts_.client.put_item(request, deadline); !done) {
    return failure(done.error());
  }
  return notice.version + 1;
}

Result<void> TableBoard::take_down(Topic topic, const std::string& key, std::int64_t version, Deadline deadline) {
  dynamo::DeleteItemRequest request{.table = place_.table, .key = names_.key(id_of(topic, key))};
  request.condition = "attribute_not_exists(#id) OR #version = :version";
  request.names.emplace("#id", names_.hash);
  request.names.emplace("#version", attribute::kNoticeVersion);
  request.values.emplace(":version", dynamo::AttributeValue::number(version));
  if (auto done = parts_.client.delete_item(request, deadline); !done) {
    return failure(done.error());
  }
  return topic == Topic::hosts ? change_roll(Roll::strike, key, deadline) : Result<void>();
}

}  // namespace sluice::queue::table
