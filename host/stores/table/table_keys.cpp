#include "host/stores/table/table_keys.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "host/queue/message.hpp"
#include "host/stores/table/key_items.hpp"
#include "host/stores/table/limits.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {
namespace {

// Side by side, of one call: as many as a claim brings.
constexpr std::size_t kMostAtOnce = 64;
// A hold is this long at least, so that what a clock may be off does not count.
constexpr Duration kTolerance = kTimeTolerance;

bool is_void(const StoredKey& key, WallTime now) { return key.until <= now; }

/// Whether the same try again would be refused for the same reason.
bool final_refusal(const dynamo::Error& error) { return error.kind == dynamo::ErrorKind::conditional_check_failed; }

}  // namespace

std::vector<KeyAnswer> TableKeys::begin(std::span<const KeyClaim> claims, Deadline deadline) {
  std::vector<KeyAnswer> answers(claims.size());
  if (auto sure = parts_.clock.be_sure(place_, kTolerance, deadline); !sure) {
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
  look(claims, looking, answers, deadline);
  return answers;
}

TableKeys::Indices TableKeys::mark(std::span<const KeyClaim> claims, const Indices& which,
                                   std::vector<KeyAnswer>& answers, Deadline deadline) const {
  Indices open;
  for (std::size_t from = 0; from < which.size(); from += kMostAtOnce) {
    const auto some = std::span(which).subspan(from, std::min(kMostAtOnce, which.size() - from));
    const WallTime now = parts_.clock.wall_now();
    std::vector<dynamo::ItemWrite> writes;
    for (const std::size_t i : some) {
      writes.emplace_back(mark_request(place_.table, claims[i], now, scope_));
    }
    const auto outcomes = parts_.client.write_each(writes, deadline);
    for (std::size_t at = 0; at < some.size(); ++at) {
      const std::size_t i = some[at];
      if (outcomes[at]) {
        answers[i] = {.owner = claims[i].owner, .until = later(now, claims[i].hold_for)};
        continue;
      }
      answers[i] = {.state = KeyState::failed, .error = store_error(place_, outcomes[at].error())};
      if (final_refusal(outcomes[at].error()) || outcomes[at].error().outcome_unknown) {
        open.push_back(i);
      }
    }
  }
  return open;
}

void TableKeys::look(std::span<const KeyClaim> claims, const Indices& which, std::vector<KeyAnswer>& answers,
                     Deadline deadline) const {
  for (std::size_t from = 0; from < which.size(); from += kMaxKeysPerBatchGet) {
    const auto some = std::span(which).subspan(from, std::min(kMaxKeysPerBatchGet, which.size() - from));
    std::map<std::string, StoredKey> found;
    std::map<std::string, dynamo::Item> keys;
    for (const std::size_t i : some) {
      dynamo::Item key = key_item_key(claims[i].job, claims[i].key, scope_);
      std::string id = scope_.names.id_of(key);
      keys.emplace(std::move(id), std::move(key));
    }
    std::vector<dynamo::Item> wanted;
    wanted.reserve(keys.size());
    for (const auto& [id, key] : keys) {
      wanted.push_back(key);
    }
    const auto items = parts_.client.batch_get(place_.table, wanted, deadline);
    const WallTime now = parts_.clock.wall_now();
    for (const auto& item : items ? *items : std::vector<dynamo::Item>()) {
      if (StoredKey key; read_key_item(item, key, scope_)) {
        found.emplace(scope_.names.id_of(item), std::move(key));
      }
    }
    for (const std::size_t i : some) {
      KeyAnswer& answer = answers[i];
      const auto stored = found.find(scope_.names.id_of(key_item_key(claims[i].job, claims[i].key, scope_)));
      const bool there = stored != found.end() && !is_void(stored->second, now);
      if (!items) {
        answer = {.state = KeyState::failed, .error = store_error(place_, items.error())};
      } else if (there && stored->second.done) {
        answer = {KeyState::done, stored->second.owner, stored->second.result, stored->second.until, {}};
      } else if (claims[i].hold_for <= Duration::zero()) {
        answer = {};
      } else if (there && stored->second.owner == claims[i].owner) {
        answer = {.owner = claims[i].owner, .until = stored->second.until};
      } else if (there) {
        answer = {.state = KeyState::running, .owner = stored->second.owner, .until = stored->second.until};
      } else if (answer.error.code() != ErrorCode::unknown_outcome) {
        // It was another's a moment ago, and is gone: the next try will have it.
        answer = {.state = KeyState::running, .until = now};
      }
    }
  }
}

Result<void> TableKeys::release(std::span<const KeyClaim> claims, Deadline deadline) {
  Result<void> all;
  for (std::size_t from = 0; from < claims.size(); from += kMostAtOnce) {
    std::vector<dynamo::ItemWrite> writes;
    for (const KeyClaim& claim : claims.subspan(from, std::min(kMostAtOnce, claims.size() - from))) {
      writes.emplace_back(unmark_request(place_.table, claim, scope_));
    }
    for (const auto& outcome : parts_.client.write_each(writes, deadline)) {
      if (!outcome && !final_refusal(outcome.error()) && all) {
        all = store_error(place_, outcome.error());
      }
    }
  }
  return all;
}

Result<KeyPage> TableKeys::list(const std::string& job, std::size_t limit, const std::string& cursor,
                                Deadline deadline) {
  dynamo::ScanRequest scan{.table = place_.table, .filter = "begins_with(#id, :prefix)", .consistent = true};
  scan.names.emplace("#id", scope_.names.hash);
  scan.values.emplace(":prefix", scope_.prefix(job));
  if (!cursor.empty()) {
    scan.exclusive_start_key = scope_.names.key(cursor);
  }
  KeyPage page;
  const WallTime now = parts_.clock.wall_now();
  while (page.keys.size() < limit) {
    auto read = parts_.client.scan(scan, deadline);
    if (!read) {
      return store_error(place_, read.error());
    }
    for (const auto& item : read->items) {
      StoredKey key;
      if (!read_key_item(item, key, scope_) || is_void(key, now)) {
        continue;
      }
      page.keys.push_back(std::move(key));
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

Result<std::optional<StoredKey>> TableKeys::get(const std::string& job, const std::string& key, Deadline deadline) {
  const auto found = parts_.client.get_item(
      {.table = place_.table, .key = key_item_key(job, key, scope_), .consistent = true}, deadline);
  if (!found) {
    return store_error(place_, found.error());
  }
  StoredKey stored;
  const bool there = read_key_item(found->item, stored, scope_) && !is_void(stored, parts_.clock.wall_now());
  return there ? std::optional<StoredKey>(std::move(stored)) : std::nullopt;
}

Result<bool> TableKeys::forget(const std::string& job, const std::string& key, Deadline deadline) {
  dynamo::DeleteItemRequest request{.table = place_.table, .key = key_item_key(job, key, scope_)};
  request.return_values = "ALL_OLD";
  const auto gone = parts_.client.delete_item(request, deadline);
  if (!gone) {
    return store_error(place_, gone.error());
  }
  StoredKey stored;
  return read_key_item(gone->item, stored, scope_) && !is_void(stored, parts_.clock.wall_now());
}

}  // namespace sluice::queue::table
