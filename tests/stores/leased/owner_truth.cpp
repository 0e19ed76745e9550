#include <algorithm>

#include "host/stores/leased/leased_schema.hpp"
#include "tests/stores/leased/owner_story.hpp"

namespace sluice::test {

namespace leased = queue::leased;
using queue::CompletionAction;
using queue::Delivery;

namespace {

constexpr const char* kEdited = "edited ";

int edits_in(const std::string& body) {
  return body.starts_with(kEdited) ? std::atoi(body.c_str() + std::string_view(kEdited).size()) : 0;
}

}  // namespace

OwnerTruth::OwnerTruth(OwnerWorld& world) : world_(world) {
  world_.model.observe([this](const std::string& who, const std::string& /*table*/, const dynamo::Item* before,
                              const dynamo::Item* after) { see(who, before, after); });
}

void OwnerTruth::say(const std::string& what) {
  if (wrong_.empty()) {
    wrong_ = what;
  }
}

void OwnerTruth::sent(const std::string& id, const std::string& group) {
  known_[id].group = group;
  if (!group.empty()) {
    in_group_[group].insert(id);
  }
}

void OwnerTruth::see(const std::string& who, const dynamo::Item* before, const dynamo::Item* after) {
  if (before == nullptr && after == nullptr) {
    return;  // a removal of what was not there
  }
  const auto place = leased::Place::of(after == nullptr ? *before : *after);
  if (place.partition == leased::kHosts) {
    // One that was long under way renews nothing: a lease begins when its heartbeat is sent.
    if (after != nullptr && place.sort == who && asked_at_[who] == world_.clock.steady_now()) {
      see_beat(who);
    }
    return;
  }
  if (place.partition == leased::ownership_partition(kOwnersQueue, queue::Half::standard)) {
    if (before != nullptr && after != nullptr) {
      see_owner(who, *before);
    }
    changed_hands_at_[place.sort] = world_.clock.steady_now();
    return;
  }
  const auto partition = leased::parse_partition(place.partition);
  if (!partition) {
    return;
  }
  const std::string id = leased::id_of(after == nullptr ? *before : *after);
  auto& half = partition->half == queue::Half::standard ? there_ : dead_;
  if (after != nullptr) {
    half[id] = *after;
    return;
  }
  half.erase(id);
  if (&half == &there_ && !ending_[id].contains(who) && who != "OUTSIDE") {
    say(who + " has removed " + id + ", which it has never worked on");
  }
}

void OwnerTruth::see_beat(const std::string& who) {
  const SteadyTime now = world_.clock.steady_now();
  const auto last = beat_at_.find(who);
  if (last == beat_at_.end() || now >= last->second + world_.plan.lease) {
    leased_since_[who] = now;
  }
  beat_at_[who] = now;
}

// Whoever lives loses a shard only by his own hand. One whose lease had ended, and who has begun another one, has to
// take anew what was his.
void OwnerTruth::see_owner(const std::string& who, const dynamo::Item& before) {
  const auto* owner = dynamo::find<std::string>(before, leased::attribute::kOwner);
  if (owner == nullptr || owner->empty() || *owner == who) {
    return;
  }
  const auto beat = beat_at_.find(*owner);
  const bool his = changed_hands_at_[leased::Place::of(before).sort] >= leased_since_[*owner];
  if (beat != beat_at_.end() && world_.clock.steady_now() < beat->second + world_.plan.lease && his) {
    say(who + " has taken shard " + leased::Place::of(before).sort + " from " + *owner + ", whose lease has not ended");
  }
}

void OwnerTruth::begins(OwnerHost& host, const Delivery& handed) {
  const std::string& id = handed.message.id;
  Known& known = known_.at(id);
  const auto beat = beat_at_.find(host.name);
  if (beat == beat_at_.end() || world_.clock.steady_now() > beat->second + world_.plan.lease * 2 / 3) {
    say(host.name + " begins with " + id + " in the last third of a lease that was not renewed");
  }
  check_group(host, id, known);
  check_crash(host, handed, known);
  known.started = true;
  known.last_host = host.name;
}

void OwnerTruth::check_group(const OwnerHost& host, const std::string& id, const Known& known) {
  if (known.group.empty()) {
    return;
  }
  for (const std::string& other : in_group_[known.group]) {
    if (other >= id) {
      break;
    }
    if (there_.contains(other)) {
      say(host.name + " begins with " + id + " before " + other + " of its group is done");
    }
    const auto dead = dead_.find(other);
    if (dead != dead_.end() && !leased::held_sort(dead->second).empty()) {
      say(host.name + " begins with " + id + " although the dead letter " + other + " keeps its group waiting");
    }
  }
}

void OwnerTruth::check_crash(const OwnerHost& host, const Delivery& handed, Known& known) {
  const auto version = std::exchange(known.crash_version, std::nullopt);
  const auto record = there_.find(handed.message.id);
  if (!version || record == there_.end()) {
    return;
  }
  const auto now = leased::state_of(record->second);
  if (!handed.suspect && now.version == *version) {
    say(host.name + " begins with " + handed.message.id +
        ", which was at work in a host that crashed, as with any other");
  } else if (handed.suspect && now.version == handed.receipt.version && now.receives < handed.message.attempt) {
    say(host.name + " begins with the suspect " + handed.message.id + " without having counted the attempt");
  }
  ++crashes_checked_;
}

void OwnerTruth::ending(const OwnerHost& host, const Delivery& handed, CompletionAction action) {
  if (action == CompletionAction::remove || action == CompletionAction::dead_letter) {
    ++ending_[handed.message.id][host.name];
    known_.at(handed.message.id).ended_by_host = true;
  }
}

void OwnerTruth::ended(const OwnerHost& host, const Delivery& handed, CompletionAction action) {
  const Known& known = known_.at(handed.message.id);
  if (edits_in(handed.message.body) < known.edits) {
    say(host.name + " has settled (" + std::to_string(static_cast<int>(action)) + ") " + handed.message.id +
        ", which an operator has edited since");
  }
}

void OwnerTruth::crashed(const OwnerHost& host, const Delivery& handed) {
  Known& known = known_.at(handed.message.id);
  const auto record = there_.find(handed.message.id);
  if (known.last_host != host.name || record == there_.end()) {
    return;
  }
  const auto now = leased::state_of(record->second);
  // What waits for a later time has been put back, although its host never heard of it: nobody had it at work any more.
  if (now.hidden_until.value_or(WallTime()) <= world_.clock.wall_now()) {
    known.crash_version = now.version;
  }
}

void OwnerTruth::edit(const std::string& id) {
  const auto found = there_.find(id);
  if (found == there_.end()) {
    return;
  }
  dynamo::Item item = found->second;
  const std::int64_t version = leased::version_of(item).number + 1;
  const int edits = ++known_.at(id).edits;
  item.insert_or_assign(std::string(leased::attribute::kVersion), dynamo::AttributeValue::number(version));
  item.insert_or_assign(std::string(leased::attribute::kNonce), "edit-" + std::to_string(edits));
  item.insert_or_assign(std::string(leased::attribute::kBody), kEdited + std::to_string(edits));
  world_.put(std::move(item));
}

void OwnerTruth::release_groups() {
  const auto dead = dead_;
  for (const auto& [id, item] : dead) {
    if (!leased::held_sort(item).empty()) {
      world_.remove(leased::hold_place(kOwnersQueue, leased::shard_of(item), id).key());
      world_.remove(leased::Place::of(item).key());
    }
  }
}

void OwnerTruth::close() {
  for (const auto& [id, known] : known_) {
    if (!there_.contains(id) && !known.ended_by_host) {
      say(id + " is gone, and nobody has asked for that");
    }
    if (there_.contains(id) && dead_.contains(id)) {
      say(id + " lies in both halves");
    }
  }
}

}  // namespace sluice::test
