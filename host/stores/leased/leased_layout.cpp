#include "host/stores/leased/leased_layout.hpp"

#include <set>
#include <utility>
#include <vector>

#include "host/queue/message.hpp"
#include "host/stores/leased/leased_actions.hpp"
#include "host/stores/leased/leased_lookup.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::leased {
namespace {

using dynamo::TransactAction;
using table::EffectLayout;
using table::Mark;
using table::MarkScope;

class LeasedLayout final : public EffectLayout {
 public:
  LeasedLayout(table::StoreParts parts, table::QueueTable place, PlaceChoice place_for)
      : parts_(parts),
        place_(std::move(place)),
        place_for_(std::move(place_for)),
        scope_{.names = kLoneNames, .queue = place_.queue} {}

  const table::QueueTable& place() const override { return place_; }
  std::string scope() const override { return place_.table + '/' + place_.queue; }

  // To a message with an id of its sender's an alias leads, and one that is there may be of a message that is gone:
  // whoever sends with ids of his own finds that out by sending. Any other has the id of the place where it lies,
  // unless a mark has to name it.
  Result<std::vector<TransactAction>> put(const EmittedMessage& emitted, const std::string& token,
                                          WallTime now) const override {
    const NewMessage& message = emitted.message;
    if (!is_storable_id(place_.queue, message.id)) {
      return Error(ErrorCode::invalid, unstorable_id(place_.queue));
    }
    const bool named = !emitted.made_id || has_send_keys(message);
    const Place to = place_for_(message, now);
    SLUICE_TRY(item, encode_record(message, {.place = to, .own_id = named ? message.id : std::string(), .now = now}));
    if (!token.empty()) {
      item->insert_or_assign(std::string(attribute::kUniqueToken), unique_token(message, token));
    }
    std::vector<TransactAction> actions{table::put_message(place_.table, *item, kLoneNames)};
    if (named) {
      actions.push_back(put_alias(place_, message.id, to, std::nullopt));
    }
    return actions;
  }

  TransactAction dedup_mark(const NewMessage& message, const std::string& token, WallTime now) const override {
    return put_dedup_mark(place_.table, message, message.id, token, now, scope_);
  }
  TransactAction unique_mark(const NewMessage& message, const std::string& token, const std::string& before,
                             WallTime now) const override {
    return put_unique_mark(place_.table, message, message.id, unique_token(message, token), before, now, scope_);
  }
  TransactAction key_record(const KeyRecord& record, const std::string& owner, WallTime now) const override {
    return table::action_of(table::record_request(place_.table, record, owner, now, {kLoneNames, place_.queue}));
  }

  dynamo::Result<std::vector<SentBefore>> look(std::span<const NewMessage* const> messages,
                                               Deadline deadline) const override {
    const LeasedLookup lookup(parts_.client, place_);
    std::vector<Place> marks;
    std::set<Place> all;
    for (const NewMessage* message : messages) {
      marks.push_back(mark_place(scope_.dedup_id(message->dedup_id)));
      marks.push_back(mark_place(scope_.unique_id(message->unique_key)));
      if (!message->dedup_id.empty()) {
        all.insert(marks[marks.size() - 2]);
      }
      if (!message->unique_key.empty()) {
        all.insert(marks.back());
      }
    }
    SLUICE_TRY(items, lookup.read(all, deadline));
    std::vector<SentBefore> standings(messages.size());
    std::set<std::string> named;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      standings[i].dedup = mark(*items, marks[2 * i]);
      standings[i].unique = mark(*items, marks[2 * i + 1]);
      if (standings[i].unique.there()) {
        named.insert(standings[i].unique.first);
      }
    }
    SLUICE_TRY(holders, lookup.find(named, deadline));
    for (SentBefore& standing : standings) {
      const auto holder = holders->find(standing.unique.first);
      if (holder != holders->end() && holder->second.there()) {
        standing.held = holds_key(holder->second.item, standing.unique);
      }
    }
    return standings;
  }

 private:
  static Mark mark(const LeasedLookup::Items& items, const Place& place) {
    const auto found = items.find(place);
    return Mark::of(found == items.end() ? nullptr : &found->second);
  }

  const table::StoreParts parts_;
  const table::QueueTable place_;
  const PlaceChoice place_for_;
  const MarkScope scope_;
};

}  // namespace

std::unique_ptr<EffectLayout> make_leased_layout(table::StoreParts parts, table::QueueTable place,
                                                 PlaceChoice place_for) {
  return std::make_unique<LeasedLayout>(parts, std::move(place), std::move(place_for));
}

}  // namespace sluice::queue::leased
