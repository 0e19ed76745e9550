#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/queue/doorbell.hpp"
#include "host/queue/message.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_queue.hpp"

namespace sluice::queue::leased {
namespace {

using table::Repetition;
using table::StatementFate;
using table::StatementOutcome;

SendResult failed(std::string id, Error error) { return {SendStatus::failed, std::move(id), std::move(error)}; }

Error behind_a_failure() {
  return {ErrorCode::unavailable,
          "it was not sent, as the message before it in its group was not, or may not have been"};
}

/// The write that puts a record where nothing lies yet.
table::RecordWrite insert_of(const table::QueueTable& table, const dynamo::Item& item) {
  const Place place = Place::of(item);
  table::RecordWrite write{
      .kind = table::RecordWrite::Kind::insert, .table = table.table, .expected = {.id = place.partition}};
  write.expected.sort = place.sort;
  write.item = item;
  write.names = &kRecordNames;
  return write;
}

bool is_plain(const dynamo::Item& item, const NewMessage& message) {
  return !item.contains(attribute::kOwnId) && !has_send_keys(message);
}

/// Sends to one queue. A message whose id the store makes is one statement of a batch of 25: 1 write unit for each KB,
/// a twenty-fifth of a request. One with an id of the sender's own, a deduplication id or a unique key is a transaction
/// (`insert_keyed`).
///
/// A group's messages are put one after the other, and none behind one that may not be there. One without a group goes
/// to another shard where its own is throttled.
///
/// An id that was made by `id_at` says where its message lies. Sent under it for the first time, that one is put there
/// and costs what one does whose id the store makes; `send` looks for it, wherever it lies by now.
class LeasedSender final : public Sender {
 public:
  LeasedSender(LeasedQueue& queue, Doorbell& doorbell) : queue_(queue), doorbell_(doorbell) {}

  // The time, and the number of shards.
  Result<std::string> moment(Deadline deadline) override {
    SLUICE_TRY(shards_now, shards(deadline));
    return spelt_moment({.time = queue_.keys.moment(queue_.parts.clock.wall_now()), .shards = shards_now->count});
  }

  std::optional<std::string> id_at(std::string_view moment, std::string_view sending, std::uint64_t number,
                                   const NewMessage& message) const override {
    const auto at = read_moment(moment);
    if (!at) {
      return std::nullopt;
    }
    // In the order of the numbers, as a batch whose ids the store makes lies.
    const std::string sort =
        sort_key_of(message.priority, later(at->time, message.delay), table::stable_hash(sending), number);
    const std::uint64_t chosen = table::stable_hash(message.group.empty() ? sort : message.group);
    return made_id(sort, static_cast<std::uint32_t>(chosen % at->shards));
  }

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) override {
    return send(messages, Ids::any, deadline);
  }

  std::vector<SendResult> send_fresh(std::vector<NewMessage> messages, Deadline deadline) override {
    return send(messages, Ids::fresh, deadline);
  }

 private:
  enum class Ids { any, fresh };

  /// A message on its way: its place in the request, and its item.
  struct Draft {
    std::size_t place = 0;
    dynamo::Item item;
  };

  // Of each group one after the other: what is put side by side may be there in any order, and some of it not at all.
  static std::vector<std::vector<Draft>> in_rounds(std::span<const NewMessage> messages, std::vector<Draft> drafts) {
    std::vector<std::vector<Draft>> rounds(drafts.empty() ? 0 : 1);
    std::unordered_map<std::string_view, std::size_t> next;
    for (Draft& draft : drafts) {
      const std::string& group = messages[draft.place].group;
      const std::size_t round = group.empty() ? 0 : next[group]++;
      if (round == rounds.size()) {
        rounds.emplace_back();
      }
      rounds[round].push_back(std::move(draft));
    }
    return rounds;
  }

  // Where a new message is to lie, and what its item has to say of its id and its time.
  NewRecord record_of(const NewMessage& message, Ids ids, std::uint32_t shards, WallTime now) const {
    if (auto made = ids == Ids::fresh ? made_place(queue_.place.queue, message.id) : std::nullopt) {
      // It was sent when its id was made.
      return {.place = *made, .own_id = {}, .now = message.delay > Duration::zero() ? now : due_of(made->sort)};
    }
    const std::uint32_t shard = queue_.shard_for(message.group, shards);
    const WallTime due = later(now, message.delay);
    return {.place = {partition_of(queue_.place.queue, Half::standard, shard),
                      queue_.keys.next(message.priority, due, queue_.random)},
            .own_id = message.id,
            .now = now};
  }

  std::vector<Draft> draft(std::span<const NewMessage> messages, Ids ids, std::uint32_t shards,
                           std::vector<SendResult>& results) const {
    std::vector<Draft> drafts;
    drafts.reserve(messages.size());
    const WallTime now = queue_.keys.stamp(queue_.parts.clock.wall_now());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const NewMessage& message = messages[i];
      results[i].id = message.id;
      if (auto refused = refused_send_keys(message)) {
        results[i] = failed(message.id, std::move(*refused));
        continue;
      }
      if (!message.id.empty() && !is_storable_id(queue_.place.queue, message.id)) {
        results[i] = failed(message.id, {ErrorCode::invalid, unstorable_id(queue_.place.queue)});
        continue;
      }
      auto item = encode_record(message, record_of(message, ids, shards, now));
      if (item) {
        results[i].id = id_of(*item);
        drafts.push_back({i, std::move(*item)});
      } else {
        results[i] = failed(message.id, item.error());
      }
    }
    return drafts;
  }

  Result<Shards> shards(Deadline deadline) const {
    const auto sure = queue_.parts.clock.be_sure(queue_.place, table::kTimeTolerance, deadline);
    return sure ? queue_.shards.settled(deadline) : Result<Shards>(sure.error());
  }

  std::vector<SendResult> send(std::span<const NewMessage> messages, Ids ids, Deadline deadline) {
    std::vector<SendResult> results(messages.size());
    if (messages.empty()) {
      return results;
    }
    const auto shards_now = shards(deadline);
    if (!shards_now) {
      for (std::size_t i = 0; i < messages.size(); ++i) {
        results[i] = failed(messages[i].id, shards_now.error());
      }
      return results;
    }
    std::set<std::string_view> stopped;
    for (auto& round : in_rounds(messages, draft(messages, ids, shards_now->count, results))) {
      std::erase_if(round, [&](const Draft& draft) {
        const bool behind = stopped.contains(messages[draft.place].group);
        if (behind) {
          results[draft.place] = failed(results[draft.place].id, behind_a_failure());
        }
        return behind;
      });
      std::vector<std::size_t> places;
      std::transform(round.begin(), round.end(), std::back_inserter(places),
                     [](const Draft& one) { return one.place; });
      send_keyed(messages, round, results, deadline);
      send_plain(messages, std::move(round), shards_now->count, results, deadline);
      for (const std::size_t i : places) {
        if (results[i].status == SendStatus::failed && results[i].error.code() != ErrorCode::invalid &&
            !messages[i].group.empty()) {
          stopped.insert(messages[i].group);
        }
      }
    }
    doorbell_.ring_sent(queue_.place.queue, messages, results);
    return results;
  }

  // Takes those away that are no plain ones.
  void send_keyed(std::span<const NewMessage> messages, std::vector<Draft>& drafts, std::vector<SendResult>& results,
                  Deadline deadline) const {
    const auto plain = std::stable_partition(
        drafts.begin(), drafts.end(), [&](const Draft& draft) { return is_plain(draft.item, messages[draft.place]); });
    std::vector<KeyedDraft> keyed;
    for (auto draft = plain; draft != drafts.end(); ++draft) {
      keyed.push_back(
          {.item = std::move(draft->item), .result = &results[draft->place], .message = &messages[draft->place]});
    }
    drafts.erase(plain, drafts.end());
    if (!keyed.empty()) {
      const auto layout = make_leased_layout(queue_.parts, queue_.place, {});
      insert_keyed(queue_.parts, *layout, queue_.random, std::move(keyed), deadline);
    }
  }

  void send_plain(std::span<const NewMessage> messages, std::vector<Draft> drafts, std::uint32_t shards,
                  std::vector<SendResult>& results, Deadline deadline) const {
    const auto grouped = std::stable_partition(drafts.begin(), drafts.end(),
                                               [&](const Draft& draft) { return messages[draft.place].group.empty(); });
    std::vector<Draft> bound(std::make_move_iterator(grouped), std::make_move_iterator(drafts.end()));
    drafts.erase(grouped, drafts.end());
    std::vector<std::string> open;  // partitions that have not been found throttled
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      open.push_back(partition_of(queue_.place.queue, Half::standard, shard));
    }
    while (!drafts.empty() && !open.empty()) {
      drafts = write(std::move(drafts), Repetition::until_answered, results, deadline);
      for (const Draft& draft : drafts) {
        std::erase(open, Place::of(draft.item).partition);
      }
      for (std::size_t k = 0; k < drafts.size() && !open.empty(); ++k) {
        Place place = Place::of(drafts[k].item);
        place.partition = open[k % open.size()];
        for (auto& [name, value] : place.key()) {
          drafts[k].item.insert_or_assign(name, std::move(value));
        }
        results[drafts[k].place].id = id_of(drafts[k].item);
      }
    }
    bound.insert(bound.end(), std::make_move_iterator(drafts.begin()), std::make_move_iterator(drafts.end()));
    write(std::move(bound), Repetition::until_known, results, deadline);
  }

  std::vector<Draft> write(std::vector<Draft> drafts, Repetition repetition, std::vector<SendResult>& results,
                           Deadline deadline) const {
    std::vector<Draft> left;
    if (drafts.empty()) {
      return left;
    }
    std::vector<table::RecordWrite> writes;
    writes.reserve(drafts.size());
    for (const Draft& draft : drafts) {
      writes.push_back(insert_of(queue_.place, draft.item));
    }
    const auto outcomes = queue_.parts.runner.run(std::move(writes), repetition, deadline);
    for (std::size_t k = 0; k < drafts.size(); ++k) {
      SendResult& result = results[drafts[k].place];
      const StatementOutcome& outcome = outcomes[k];
      if (outcome.fate == StatementFate::done || (outcome.fate == StatementFate::refused && outcome.repeated)) {
        continue;  // nobody else comes upon this place: an earlier try has arrived
      }
      const bool throttled =
          outcome.fate == StatementFate::failed && outcome.error.kind == dynamo::ErrorKind::throttled;
      if (throttled && repetition == Repetition::until_answered) {
        left.push_back(std::move(drafts[k]));
      } else if (outcome.fate == StatementFate::refused) {
        result = {SendStatus::duplicate_id, result.id, table::duplicate_id(queue_.place, result.id)};
      } else if (outcome.fate == StatementFate::unknown || outcome.repeated) {
        result = failed(result.id,
                        {ErrorCode::unknown_outcome,
                         "message '" + result.id + "' may or may not have been stored: " + outcome.error.message});
      } else {
        result = failed(result.id, table::store_error(queue_.place, outcome.error));
      }
    }
    return left;
  }

  LeasedQueue& queue_;
  Doorbell& doorbell_;
};

}  // namespace

std::unique_ptr<Sender> make_leased_sender(LeasedQueue& queue, Doorbell& doorbell) {
  return std::make_unique<LeasedSender>(queue, doorbell);
}

}  // namespace sluice::queue::leased
