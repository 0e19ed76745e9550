#include "host/stores/table/key_items.hpp"

#include <cstdint>
#include <utility>

#include "base/guard.hpp"
#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "dynamo/signing/digest.hpp"
#include "host/queue/message.hpp"
#include "host/stores/table/times.hpp"

namespace sluice::queue::table {
namespace {

using dynamo::AttributeValue;

std::int64_t milliseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// DynamoDB may remove it from then on: a minute after it is void, so that nobody's clock sees it go early.
std::int64_t expiry_seconds(WallTime until) {
  return std::chrono::duration_cast<std::chrono::seconds>(until.time_since_epoch()).count() + 60;
}

std::string id_of(const std::string& job, std::string_view key, const KeyScope& scope) {
  return scope.prefix(job) + dynamo::to_hex(dynamo::sha256(key));
}

dynamo::PutItemRequest put(const std::string& table, const std::string& job, std::string_view key,
                           const std::string& owner, WallTime until, const KeyScope& scope) {
  dynamo::PutItemRequest request{.table = table, .item = key_item_key(job, key, scope)};
  request.item.emplace(attribute::kKeyText, dynamo::Binary{std::string(key)});
  request.item.emplace(attribute::kKeyOwner, owner);
  request.item.emplace(attribute::kKeyUntil, AttributeValue::number(milliseconds(until)));
  request.item.emplace(scope.names.expires, AttributeValue::number(expiry_seconds(until)));
  return request;
}

/// Nobody has it, or its time has passed.
void or_void(dynamo::PutItemRequest& request, WallTime now, const KeyScope& scope) {
  request.condition = "attribute_not_exists(#id) OR #until <= :now";
  request.names.emplace("#id", scope.names.hash);
  request.names.emplace("#until", attribute::kKeyUntil);
  request.values.emplace(":now", AttributeValue::number(milliseconds(now)));
}

}  // namespace

std::string KeyScope::prefix(const std::string& job) const {
  const auto part = [](const std::string& name) { return name.empty() ? name : name + "/"; };
  return std::string(kKeyPrefix) + part(queue) + part(job);
}

dynamo::Item key_item_key(const std::string& job, std::string_view key, const KeyScope& scope) {
  return scope.names.key(id_of(job, key, scope));
}

dynamo::PutItemRequest mark_request(const std::string& table, const KeyClaim& claim, WallTime now,
                                    const KeyScope& scope) {
  const WallTime until = SLUICE_GUARD(key_mark_expiry) ? later(now, claim.hold_for) : kEndOfTime;
  auto request = put(table, claim.job, claim.key, claim.owner, until, scope);
  request.item.emplace(attribute::kKeyFence, AttributeValue::number(claim.fence));
  or_void(request, now, scope);
  request.condition += " OR (#owner = :owner AND attribute_not_exists(#done))";
  request.names.emplace("#owner", attribute::kKeyOwner);
  request.names.emplace("#done", attribute::kKeyDone);
  request.values.emplace(":owner", claim.owner);
  return request;
}

dynamo::DeleteItemRequest unmark_request(const std::string& table, const KeyClaim& claim, const KeyScope& scope) {
  dynamo::DeleteItemRequest request{.table = table, .key = key_item_key(claim.job, claim.key, scope)};
  request.condition = "#owner = :owner AND #fence = :fence AND attribute_not_exists(#done)";
  request.names.emplace("#owner", attribute::kKeyOwner);
  request.names.emplace("#fence", attribute::kKeyFence);
  request.values.emplace(":fence", AttributeValue::number(claim.fence));
  request.names.emplace("#done", attribute::kKeyDone);
  request.values.emplace(":owner", claim.owner);
  return request;
}

dynamo::PutItemRequest record_request(const std::string& table, const KeyRecord& record, const std::string& owner,
                                      WallTime now, const KeyScope& scope) {
  auto request = put(table, record.job, record.key_of(owner), owner, later(now, record.ttl), scope);
  request.item.emplace(attribute::kKeyDone, true);
  if (!record.result.empty()) {
    request.item.emplace(attribute::kKeyResult, dynamo::Binary{record.result});
  }
  or_void(request, now, scope);
  request.condition += " OR #owner = :owner";
  request.names.emplace("#owner", attribute::kKeyOwner);
  request.values.emplace(":owner", owner);
  return request;
}

bool read_key_item(const dynamo::Item& item, StoredKey& key, const KeyScope& scope) {
  const auto* id = dynamo::find<std::string>(item, scope.names.hash);
  const auto* text = dynamo::find<dynamo::Binary>(item, attribute::kKeyText);
  const auto* owner = dynamo::find<std::string>(item, attribute::kKeyOwner);
  const auto until = dynamo::whole_number(item, attribute::kKeyUntil);
  const std::string prefix = scope.prefix();
  if (id == nullptr || !id->starts_with(prefix) || text == nullptr || owner == nullptr || !until) {
    return false;
  }
  // Names of queues and jobs have no '/'. One that is left in the job's place is behind another queue's name.
  const auto slash = id->rfind('/');
  key.job = id->substr(prefix.size(), slash < prefix.size() ? 0 : slash - prefix.size());
  if (key.job.find('/') != std::string::npos) {
    return false;
  }
  key.key = text->bytes;
  key.owner = *owner;
  const auto* done = dynamo::find<bool>(item, attribute::kKeyDone);
  key.done = done != nullptr && *done;
  const auto* result = dynamo::find<dynamo::Binary>(item, attribute::kKeyResult);
  key.result = result == nullptr ? std::string() : result->bytes;
  key.until = WallTime(std::chrono::milliseconds(*until));
  return true;
}

}  // namespace sluice::queue::table
