#include "tests/support/sim_keys.hpp"

#include <memory>
#include <optional>

namespace sluice::test {

using queue::KeyAnswer;
using queue::KeyClaim;
using queue::KeyState;

const SimKeyTable::Entry* SimKeyTable::find(const Name& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() || found->second.key.until <= clock_.wall_now() ? nullptr : &found->second;
}

KeyAnswer SimKeyTable::begin(const KeyClaim& claim) {
  const MutexLock lock(mutex_);
  const Entry* entry = find({claim.job, claim.key});
  if (entry != nullptr && entry->key.done) {
    return {KeyState::done, entry->key.owner, entry->key.result, entry->key.until, {}};
  }
  if (claim.hold_for <= Duration::zero()) {
    return {};
  }
  if (entry != nullptr && entry->key.owner != claim.owner) {
    return {.state = KeyState::running, .owner = entry->key.owner, .until = entry->key.until};
  }
  const WallTime until = clock_.wall_now() + claim.hold_for;
  entries_[{claim.job, claim.key}] = {
      {.job = claim.job, .key = claim.key, .owner = claim.owner, .done = false, .result = {}, .until = until},
      claim.fence};
  return {.owner = claim.owner, .until = until};
}

queue::OwnIdFound SimKeyTable::own_id(const std::string& job, const std::string& id) const {
  const MutexLock lock(mutex_);
  const Entry* entry = find({job, id});
  if (entry == nullptr || !entry->key.done) {
    return {.asked = true};
  }
  return {.asked = true,
          .done = std::make_shared<const KeyAnswer>(
              KeyAnswer{KeyState::done, entry->key.owner, entry->key.result, entry->key.until, {}})};
}

void SimKeyTable::release(const KeyClaim& claim) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find({claim.job, claim.key});
  if (found != entries_.end() && !found->second.key.done && found->second.key.owner == claim.owner &&
      found->second.fence == claim.fence) {
    entries_.erase(found);
  }
}

queue::KeyPage SimKeyTable::list(const std::string& job, std::size_t limit, const std::string& cursor) const {
  const MutexLock lock(mutex_);
  queue::KeyPage page;
  std::size_t at = 0;
  const std::size_t from = cursor.empty() ? 0 : std::stoul(cursor);
  for (const auto& [name, entry] : entries_) {
    if (find(name) == nullptr || (!job.empty() && name.first != job) || at++ < from) {
      continue;
    }
    if (page.keys.size() == limit) {
      page.next = std::to_string(from + limit);
      break;
    }
    page.keys.push_back(entry.key);
  }
  return page;
}

std::optional<queue::StoredKey> SimKeyTable::get(const std::string& job, const std::string& key) const {
  const MutexLock lock(mutex_);
  const Entry* entry = find({job, key});
  return entry == nullptr ? std::nullopt : std::optional(entry->key);
}

bool SimKeyTable::forget(const std::string& job, const std::string& key) {
  const MutexLock lock(mutex_);
  const bool there = find({job, key}) != nullptr;
  entries_.erase({job, key});
  return there;
}

bool SimKeyTable::may_record(const queue::KeyRecord& record, const std::string& owner) const {
  const MutexLock lock(mutex_);
  const Entry* entry = find({record.job, std::string(record.key_of(owner))});
  return entry == nullptr || entry->key.owner == owner;
}

void SimKeyTable::record(const queue::KeyRecord& record, const std::string& owner) {
  const MutexLock lock(mutex_);
  const std::string key(record.key_of(owner));
  entries_[{record.job, key}] = {{.job = record.job,
                                  .key = key,
                                  .owner = owner,
                                  .done = true,
                                  .result = record.result,
                                  .until = clock_.wall_now() + record.ttl},
                                 0};
}

std::vector<KeyAnswer> SimKeys::begin(std::span<const KeyClaim> claims, Deadline /*deadline*/) {
  std::vector<KeyAnswer> answers;
  for (const KeyClaim& claim : claims) {
    answers.push_back(table_.begin(claim));
  }
  return answers;
}

Result<void> SimKeys::release(std::span<const KeyClaim> claims, Deadline /*deadline*/) {
  for (const KeyClaim& claim : claims) {
    table_.release(claim);
  }
  return {};
}

Result<queue::KeyPage> SimKeys::list(const std::string& job, std::size_t limit, const std::string& cursor,
                                     Deadline /*deadline*/) {
  return table_.list(job, limit, cursor);
}

Result<std::optional<queue::StoredKey>> SimKeys::get(const std::string& job, const std::string& key,
                                                     Deadline /*deadline*/) {
  return table_.get(job, key);
}

Result<bool> SimKeys::forget(const std::string& job, const std::string& key, Deadline /*deadline*/) {
  return table_.forget(job, key);
}

}  // namespace sluice::test
