#include "host/stores/table/table_keys.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "base/ranges.hpp"
#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "dynamo/signing/digest.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/keys.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {
namespace {

using dynamo::AttributeValue;

// The attributes of a key's item.
constexpr std::string_view kKeyText = "sluice_key";           ///< B
constexpr std::string_view kKeyOwner = "sluice_key_owner";    ///< S: the message's id
constexpr std::string_view kKeyFence = "sluice_key_fence";    ///< N: of the delivery; of a mark only
constexpr std::string_view kKeyUntil = "sluice_key_until";    ///< N: ms since 1970, DynamoDB's time. Void after it
constexpr std::string_view kKeyDone = "sluice_key_done";      ///< BOOL, true: done. Absent: in progress
constexpr std::string_view kKeyResult = "sluice_key_result";  ///< B: what the handler gave back; absent: nothing

std::int64_t milliseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// DynamoDB may remove it from then on: a minute after it is void, so that nobody's clock sees it go early.
std::int64_t expiry_seconds(WallTime until) {
  return std::chrono::duration_cast<std::chrono::seconds>(until.time_since_epoch()).count() + 60;
}

/// The primary key of a key's item.
dynamo::Item key_item_key(const std::string& job, std::string_view key, const ItemScope& scope) {
  return scope.names.key(scope.keys_prefix(job) + dynamo::to_hex(dynamo::sha256(key)));
}

dynamo::ItemWrite put(const std::string& table, const std::string& job, std::string_view key, const std::string& owner,
                      WallTime until, const ItemScope& scope) {
  dynamo::ItemWrite request{.table = table, .item = key_item_key(job, key, scope)};
  request.item.emplace(kKeyText, dynamo::Binary{std::string(key)});
  request.item.emplace(kKeyOwner, owner);
  request.item.emplace(kKeyUntil, AttributeValue::number(milliseconds(until)));
  request.item.emplace(scope.names.expires, AttributeValue::number(expiry_seconds(until)));
  return request;
}

/// Nobody has it, or its time has passed.
std::string is_free(Placeholders& spelt, WallTime now, const ItemScope& scope) {
  return spelt.absent(scope.names.hash) + " OR " +
         spelt.compared(kKeyUntil, " <= ", AttributeValue::number(milliseconds(now)));
}

/// Whether the same try again would be refused for the same reason.
bool final_refusal(const dynamo::Error& error) { return error.kind == dynamo::ErrorKind::conditional_check_failed; }

/// Marks a key as in progress: refused where another message has it, in progress or done.
dynamo::ItemWrite mark_request(const std::string& table, const KeyClaim& claim, WallTime now, const ItemScope& scope) {
  auto request = put(table, claim.job, claim.key, claim.owner, core::mark_end(claim, now), scope);
  request.item.emplace(kKeyFence, AttributeValue::number(claim.fence));
  Placeholders spelt(request);
  request.condition = is_free(spelt, now, scope) + " OR (" + spelt.equal(kKeyOwner, claim.owner) + " AND " +
                      spelt.absent(kKeyDone) + ")";
  return request;
}

/// Takes the owner's mark away: refused where it is another's, or done.
dynamo::ItemWrite unmark_request(const std::string& table, const KeyClaim& claim, const ItemScope& scope) {
  dynamo::ItemWrite request{
      .kind = dynamo::ItemWrite::Kind::remove, .table = table, .item = key_item_key(claim.job, claim.key, scope)};
  Placeholders spelt(request);
  request.condition = spelt.equal(kKeyOwner, claim.owner) + " AND " +
                      spelt.equal(kKeyFence, AttributeValue::number(claim.fence)) + " AND " + spelt.absent(kKeyDone);
  return request;
}

/// What an item says; nothing: it is no key's item, or one of another queue.
std::optional<StoredKey> read_key_item(const dynamo::Item& item, const ItemScope& scope) {
  const auto* id = dynamo::find<std::string>(item, scope.names.hash);
  const auto* text = dynamo::find<dynamo::Binary>(item, kKeyText);
  const auto* owner = dynamo::find<std::string>(item, kKeyOwner);
  const auto until = dynamo::whole_number(item, kKeyUntil);
  const std::string prefix = scope.keys_prefix();
  if (id == nullptr || !id->starts_with(prefix) || text == nullptr || owner == nullptr || !until) {
    return std::nullopt;
  }
  StoredKey key;
  // Names of queues and jobs have no '/'. One that is left in the job's place is behind another queue's name.
  const auto slash = id->rfind('/');
  key.job = id->substr(prefix.size(), slash < prefix.size() ? 0 : slash - prefix.size());
  if (key.job.find('/') != std::string::npos) {
    return std::nullopt;
  }
  key.key = text->bytes;
  key.owner = *owner;
  const auto* done = dynamo::find<bool>(item, kKeyDone);
  key.done = done != nullptr && *done;
  key.result = bytes_of(item, kKeyResult);
  constexpr std::int64_t kLatest = kEndOfTime.time_since_epoch() / std::chrono::milliseconds(1);
  key.until = WallTime(std::chrono::milliseconds(std::clamp<std::int64_t>(*until, 0, kLatest)));
  return key;
}

/// As make_table_keys has it.
class TableKeys final : public IdempotencyKeys {
 public:
  explicit TableKeys(const RecordLayout& layout)
      : parts_(layout.parts()), place_(layout.place()), scope_(layout.marks()) {}

  std::vector<KeyAnswer> begin(std::span<const KeyClaim> claims, Deadline deadline) override {
    std::vector<KeyAnswer> answers(claims.size());
    if (auto sure = parts_.clock.be_sure(place_, kTimeTolerance, deadline); !sure) {
      std::fill(answers.begin(), answers.end(), KeyAnswer{.state = KeyState::failed, .error = sure.error()});
      return answers;
    }
    Indices marking;
    Indices looking;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      (claims[i].hold_for > Duration::zero() ? marking : looking).push_back(i);
    }
    const Indices open = mark(claims, marking, answers, deadline);
    looking.insert(looking.end(), open.begin(), open.end());
    // What one read brings is known, whatever becomes of the next one.
    for (std::size_t from = 0; from < looking.size(); from += dynamo::kMaxBatchKeys) {
      const std::size_t count = std::min(dynamo::kMaxBatchKeys, looking.size() - from);
      look(claims, std::span(looking).subspan(from, count), answers, deadline);
    }
    return answers;
  }

  Result<void> release(std::span<const KeyClaim> claims, Deadline deadline) override {
    const auto writes =
        mapped(claims, [&](const KeyClaim& claim) { return unmark_request(place_.table, claim, scope_); });
    for (const auto& outcome : parts_.client.write_each(writes, deadline)) {
      if (!outcome && !final_refusal(outcome.error())) {
        return store_error(place_, outcome.error());
      }
    }
    return {};
  }

  Result<KeyPage> list(const std::string& job, std::size_t limit, const std::string& cursor,
                       Deadline deadline) override {
    dynamo::ScanRequest scan{{.table = place_.table, .filter = "begins_with(#id, :prefix)", .consistent = true}};
    scan.names.emplace("#id", scope_.names.hash);
    scan.values.emplace(":prefix", scope_.keys_prefix(job));
    if (!cursor.empty()) {
      scan.exclusive_start_key = scope_.names.key(cursor);
    }
    const WallTime now = parts_.clock.wall_now();
    KeyPage page;
    while (page.keys.size() < limit) {
      SLUICE_TRY(read, checked(place_, parts_.client.scan(scan, deadline)));
      for (const auto& item : read->items) {
        auto key = valid_key(item, now);
        if (!key) {
          continue;
        }
        page.keys.push_back(std::move(*key));
        if (page.keys.size() == limit) {
          page.next = scope_.names.id_of(item);
          return page;
        }
      }
      scan.exclusive_start_key = std::move(read->last_evaluated_key);
      if (scan.exclusive_start_key.empty()) {
        break;
      }
    }
    return page;
  }
  Result<std::optional<StoredKey>> get(const std::string& job, const std::string& key, Deadline deadline) override {
    const dynamo::GetItemRequest request{
        .table = place_.table, .key = key_item_key(job, key, scope_), .consistent = true};
    SLUICE_TRY(found, checked(place_, parts_.client.get_item(request, deadline)));
    return valid_key(found->item, parts_.clock.wall_now());
  }

  Result<bool> forget(const std::string& job, const std::string& key, Deadline deadline) override {
    dynamo::ItemWrite request{
        .kind = dynamo::ItemWrite::Kind::remove, .table = place_.table, .item = key_item_key(job, key, scope_)};
    request.returning = true;
    SLUICE_TRY(gone, checked(place_, parts_.client.write(request, deadline)));
    return valid_key(gone->item, parts_.clock.wall_now()).has_value();
  }

 private:
  using Indices = std::vector<std::size_t>;

  std::optional<StoredKey> valid_key(const dynamo::Item& item, WallTime now) const {
    auto key = read_key_item(item, scope_);
    return key && !core::is_void(*key, now) ? std::move(key) : std::nullopt;
  }
  /// Answers by what stands there, with one read. What cannot be read, or what a lost write may still change, has
  /// failed.
  void look(std::span<const KeyClaim> claims, std::span<const std::size_t> which, std::vector<KeyAnswer>& answers,
            Deadline deadline) const {
    const auto keys = mapped(which, [&](std::size_t i) { return key_item_key(claims[i].job, claims[i].key, scope_); });
    const auto items = read_items(parts_.client, place_.table, keys, deadline);
    const WallTime now = parts_.clock.wall_now();
    std::map<std::string, StoredKey> found;
    for (const auto& item : items ? *items : std::vector<dynamo::Item>()) {
      if (auto key = read_key_item(item, scope_)) {
        found.emplace(scope_.names.id_of(item), std::move(*key));
      }
    }
    for (std::size_t k = 0; k < which.size(); ++k) {
      const std::size_t i = which[k];
      KeyAnswer& answer = answers[i];
      if (!items) {
        answer = {.state = KeyState::failed, .error = store_error(place_, items.error())};
        continue;
      }
      const auto stored = found.find(scope_.names.id_of(keys[k]));
      const StoredKey* const key = stored == found.end() ? nullptr : &stored->second;
      if (auto known = core::answer_to(claims[i], key, now)) {
        answer = *std::move(known);
      } else if (key != nullptr && !core::is_void(*key, now)) {
        answer = {.owner = claims[i].owner, .until = key->until};  // a try before, whose answer was lost
      } else if (answer.error.code() != ErrorCode::unknown_outcome) {
        // It was another's a moment ago, and is gone: the next try will have it.
        answer = {.state = KeyState::running, .until = now};
      }
    }
  }
  Indices mark(std::span<const KeyClaim> claims, const Indices& which, std::vector<KeyAnswer>& answers,
               Deadline deadline) const {
    const WallTime now = parts_.clock.wall_now();
    const auto writes =
        mapped(which, [&](std::size_t i) { return mark_request(place_.table, claims[i], now, scope_); });
    const auto outcomes = parts_.client.write_each(writes, deadline);
    Indices open;
    for (std::size_t at = 0; at < which.size(); ++at) {
      const std::size_t i = which[at];
      if (outcomes[at]) {
        answers[i] = {.owner = claims[i].owner, .until = core::mark_end(claims[i], now)};
        continue;
      }
      answers[i] = {.state = KeyState::failed, .error = store_error(place_, outcomes[at].error())};
      if (final_refusal(outcomes[at].error()) || outcomes[at].error().outcome_unknown) {
        open.push_back(i);
      }
    }
    return open;
  }

  const StoreParts& parts_;
  const QueueTable& place_;
  const ItemScope& scope_;
};

}  // namespace

dynamo::ItemWrite record_request(const std::string& table, const KeyRecord& record, const std::string& owner,
                                 WallTime now, const ItemScope& scope) {
  auto request = put(table, record.job, record.key_of(owner), owner, later(now, record.ttl), scope);
  request.item.emplace(kKeyDone, true);
  if (!record.result.empty()) {
    request.item.emplace(kKeyResult, dynamo::Binary{record.result});
  }
  Placeholders spelt(request);
  request.condition = is_free(spelt, now, scope) + " OR " + spelt.equal(kKeyOwner, owner);
  return request;
}

std::unique_ptr<IdempotencyKeys> make_table_keys(const RecordLayout& layout) {
  return std::make_unique<TableKeys>(layout);
}

}  // namespace sluice::queue::table
