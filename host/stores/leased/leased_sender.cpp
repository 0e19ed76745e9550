#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ranges.hpp"
#include "host/queue/message.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_queue.hpp"

namespace sluice::queue::leased {
namespace {

using owned::append_digits;
using owned::kTimeDigits;
using owned::read_digits;
using table::Repetition;
using table::StatementFate;

/// The write that puts a record where nothing lies yet.
table::RecordWrite insert_of(const table::QueueTable& table, const dynamo::Item& item) {
  const Place place = Place::of(item);
  table::RecordWrite write{
      .kind = table::RecordWrite::Kind::insert, .table = table.table, .expected = {.id = place.partition}};
  write.expected.sort = place.sort;
  write.item = item;
  write.names = &kNames;
  return write;
}

/// Sends to one queue. A message whose id the store makes is one statement of a batch of 25: 1 write unit for each KB,
/// a twenty-fifth of a request. One with an id of the sender's own, a deduplication id or a unique key is a transaction
/// (`insert_keyed`).
///
/// A group's messages are put one after the other, and none behind one that may not be there. One without a group whose
/// id the store makes goes to another shard where its own is throttled.
///
/// An id that was made by `id_at` says where its message lies. Sent under it for the first time, that one is put there
/// and costs what one does whose id the store makes; `send` looks for it, wherever it lies by now.
class LeasedSender final : public Sender {
 public:
  explicit LeasedSender(LeasedQueue& queue) : queue_(queue) {}

  // The time to the ms, and the number of shards less one.
  Result<std::string> moment(Deadline deadline) override {
    SLUICE_TRY(shards_now, shards(deadline));
    std::string text;
    append_digits(text, static_cast<std::uint64_t>(millis_of(queue_.keys.moment(queue_.parts.clock.wall_now()))),
                  kTimeDigits);
    append_digits(text, shards_now->count - 1, kShardDigits);
    return text;
  }

  std::optional<std::string> id_at(std::string_view moment, std::string_view sending, std::uint64_t number,
                                   const NewMessage& message) const override {
    const auto millis = read_digits(moment.substr(0, kTimeDigits));
    const auto shards = read_digits(moment.substr(std::min(kTimeDigits, moment.size())));
    if (moment.size() != kTimeDigits + kShardDigits || !millis || !shards) {
      return std::nullopt;
    }
    const WallTime time = time_of_millis(static_cast<std::int64_t>(*millis));
    // In the order of the numbers, as a batch whose ids the store makes lies.
    const std::string sort =
        sort_key_of(message.priority, later(time, message.delay), table::stable_hash(sending), number);
    const std::uint64_t chosen = table::stable_hash(message.group.empty() ? sort : message.group);
    return made_id(sort, static_cast<std::uint32_t>(chosen % (*shards + 1)));
  }

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) override {
    return send(messages, Ids::any, deadline);
  }

  std::vector<SendResult> send_fresh(std::vector<NewMessage> messages, Deadline deadline) override {
    return send(messages, Ids::fresh, deadline);
  }

 private:
  enum class Ids { any, fresh };

  /// A message on its way.
  struct Draft {
    const NewMessage* message = nullptr;
    SendResult* result = nullptr;
    dynamo::Item item{};

    bool is_plain() const { return !item.contains(attribute::kOwnId) && !has_send_keys(*message); }
    void end(SendStatus status, Error error) const { *result = {status, std::move(result->id), std::move(error)}; }
  };
  using Drafts = std::vector<Draft*>;

  std::vector<SendResult> send(std::span<const NewMessage> messages, Ids ids, Deadline deadline) {
    std::vector<SendResult> results(messages.size());
    if (messages.empty()) {
      return results;
    }
    const auto shards_now = shards(deadline);
    const WallTime now = queue_.keys.stamp(queue_.parts.clock.wall_now());
    std::vector<Draft> drafts(messages.size());  // without a result: it is refused
    for (std::size_t i = 0; i < messages.size(); ++i) {
      results[i].id = messages[i].id;
      Draft draft{&messages[i], &results[i]};
      auto item =
          shards_now ? item_of(messages[i], ids, shards_now->count, now) : Result<dynamo::Item>(shards_now.error());
      if (item) {
        results[i].id = id_of(*item);
        draft.item = std::move(*item);
        drafts[i] = std::move(draft);
      } else {
        draft.end(SendStatus::failed, item.error());
      }
    }
    // What is put side by side may be there in any order, and some of it not at all.
    std::set<std::string_view> stopped;
    for (const auto& places : rounds_of(messages)) {
      Drafts round;
      for (const std::size_t place : places) {
        if (drafts[place].result == nullptr) {
          continue;
        }
        if (stopped.contains(messages[place].group)) {
          results[place] = left_behind(std::move(results[place].id));
        } else {
          round.push_back(&drafts[place]);
        }
      }
      if (!round.empty()) {
        send_round(round, shards_now->count, deadline);
      }
      for (const Draft* draft : round) {
        const SendResult& result = *draft->result;
        if (result.status == SendStatus::failed && result.error.code() != ErrorCode::invalid &&
            !draft->message->group.empty()) {
          stopped.insert(draft->message->group);
        }
      }
    }
    queue_.parts.doorbell.ring_sent(queue_.place.queue, messages, results);
    return results;
  }

  Result<Shards> shards(Deadline deadline) const {
    SLUICE_PASS_ON(queue_.parts.clock.be_sure(queue_.place, table::kTimeTolerance, deadline));
    return queue_.shards.settled(deadline);
  }

  Result<dynamo::Item> item_of(const NewMessage& message, Ids ids, std::uint32_t shards, WallTime now) const {
    if (auto refused = refused_send_keys(message)) {
      return std::move(*refused);
    }
    const std::string& queue = queue_.place.queue;
    if (!message.id.empty() && !is_storable_id(queue, message.id)) {
      return Error(ErrorCode::invalid, unstorable_id(queue));
    }
    if (auto made = ids == Ids::fresh ? made_place(queue, message.id) : std::nullopt) {
      // It was sent when its id was made.
      const WallTime sent = message.delay > Duration::zero() ? now : due_of(made->sort);
      return encode_record(message, {.place = *made, .own_id = {}, .now = sent});
    }
    const Place place = queue_.new_place(message.group, message.priority, later(now, message.delay), shards);
    return encode_record(message, {.place = place, .own_id = message.id, .now = now});
  }

  void send_round(const Drafts& round, std::uint32_t shards, Deadline deadline) const {
    std::vector<KeyedDraft> keyed;
    Drafts bound;  // to the shard of their group, or the one that their id says
    Drafts free;
    for (Draft* draft : round) {
      if (draft->is_plain()) {
        (draft->message->group.empty() && draft->message->id.empty() ? free : bound).push_back(draft);
      } else {
        keyed.push_back({.item = std::move(draft->item), .result = draft->result, .message = draft->message});
      }
    }
    insert_keyed(*queue_.layout, std::move(keyed), deadline);
    std::vector<std::string> open;  // partitions that have not been found throttled
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      open.push_back(partition_of(queue_.place.queue, Half::standard, shard));
    }
    while (!free.empty() && !open.empty()) {
      free = write(free, Repetition::until_answered, deadline);
      for (const Draft* draft : free) {
        std::erase(open, Place::of(draft->item).partition);
      }
      for (std::size_t k = 0; k < free.size() && !open.empty(); ++k) {
        free[k]->item.insert_or_assign(std::string(attribute::kPartition), open[k % open.size()]);
        free[k]->result->id = id_of(free[k]->item);
      }
    }
    bound.insert(bound.end(), free.begin(), free.end());
    write(bound, Repetition::until_known, deadline);
  }

  /// Those that were throttled, where they are not to be tried again.
  Drafts write(const Drafts& drafts, Repetition repetition, Deadline deadline) const {
    const auto outcomes = queue_.parts.runner.run(
        mapped(drafts, [this](const Draft* draft) { return insert_of(queue_.place, draft->item); }), repetition,
        deadline);
    Drafts left;
    for (std::size_t k = 0; k < drafts.size(); ++k) {
      const Draft& draft = *drafts[k];
      const table::StatementOutcome& outcome = outcomes[k];
      if (outcome.fate == StatementFate::done || (outcome.fate == StatementFate::refused && outcome.repeated)) {
        continue;  // nobody else comes upon this place: an earlier try has arrived
      }
      const bool throttled =
          outcome.fate == StatementFate::failed && outcome.error.kind == dynamo::ErrorKind::throttled;
      if (throttled && repetition == Repetition::until_answered) {
        left.push_back(drafts[k]);
      } else if (outcome.fate == StatementFate::refused) {
        draft.end(SendStatus::duplicate_id, table::duplicate_id(queue_.place, draft.result->id));
      } else if (outcome.fate == StatementFate::unknown || outcome.repeated) {
        draft.end(SendStatus::failed,
                  {ErrorCode::unknown_outcome,
                   "message '" + draft.result->id + "' may or may not have been stored: " + outcome.error.message});
      } else {
        draft.end(SendStatus::failed, table::store_error(queue_.place, outcome.error));
      }
    }
    return left;
  }

  LeasedQueue& queue_;
};

}  // namespace

std::unique_ptr<Sender> make_leased_sender(LeasedQueue& queue) { return std::make_unique<LeasedSender>(queue); }

}  // namespace sluice::queue::leased
