#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/guard.hpp"
#include "base/mutex.hpp"
#include "base/ranges.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/message.hpp"
#include "host/queue/source.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/dynamomq/dynamomq_roles.hpp"
#include "host/stores/dynamomq/queue_state.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/record_writes.hpp"
#include "host/stores/table/delivery_writer.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {
namespace {

// The attributes that a candidate is made of. The units read are those of whole items all the same.
constexpr const char* kCandidateProjection =
    "id, #version, sent_at, receive_count, received_at, invisible_until_at, sluice_nonce, sluice_suspect";

/// Records that are looked at for one claim in sequence: of at most 400 bytes each they cost the least that is billed.
constexpr std::int64_t kSequenceLook = 10;

dynamo::QueryRequest query_of(const table::QueueTable& place, Half half, const ScanStep& step) {
  dynamo::QueryRequest query = query_of_half(place, half);
  if (!step.from.empty() && !step.to.empty()) {
    query.key_condition += " AND sent_at BETWEEN :from AND :to";
  } else if (!step.from.empty()) {
    query.key_condition += " AND sent_at >= :from";
  } else if (!step.to.empty()) {
    query.key_condition += " AND sent_at <= :to";
  }
  if (!step.from.empty()) {
    query.values.emplace(":from", step.from);
  }
  if (!step.to.empty()) {
    query.values.emplace(":to", step.to);
  }
  query.projection = kCandidateProjection;
  query.names.emplace("#version", "version");
  query.limit = step.limit;
  query.exclusive_start_key = step.after;
  return query;
}

/// `before` is the record as it was claimed, or as it was read afterwards.
Delivery delivery_of(const dynamo::Item& item, const Candidate& before, SteadyTime leased_until) {
  StoredMessage record = decode_record(item);
  Delivery delivery;
  delivery.suspect = (record.marks & core::kSuspect) != 0;  // a claim of a suspect leaves the mark, and only that one
  delivery.receipt = {before.id, record.version, make_locator(before.sort_key)};
  delivery.leased_until = leased_until;
  delivery.invisible_until = record.invisible_until.value_or(WallTime{});
  delivery.message = std::move(record.message);
  delivery.message.id = before.id;
  return delivery;
}

bool has_suspect(const std::vector<Candidate>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.suspect(); });
}

bool older(const Delivery& a, const Delivery& b) {
  return std::tie(a.message.sent_at, a.message.id) < std::tie(b.message.sent_at, b.message.id);
}

/// Claims messages of one queue half. Thread-safe.
class Claimer {
 public:
  static constexpr int kMaxRounds = 4;                                    ///< of picking, as long as races are lost
  static constexpr int kMaxPages = 8;                                     ///< of reading, in one call
  static constexpr Duration kUnclaimableRest = std::chrono::seconds(60);  ///< of a record that refuses any claim

  Claimer(QueueState& queue, Half half)
      : layout_(*queue.layout),
        parts_(layout_.parts()),
        place_(layout_.place()),
        half_(half),
        state_(queue.state_of(half)),
        backlog_(state_.backlog) {}

  /// As Source::claim. A lost race is no error, nor is a failed request after others have succeeded.
  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) {
    // Before the first answer nothing is known that could be judged by a wrong time; the first page brings it.
    SLUICE_PASS_ON(be_sure(request.visibility, parts_.client.clock_reading().has_value(), deadline));
    const bool in_sequence = request.rules.order == Order::queue;
    Attempt result;
    const std::size_t max = std::min(request.max, in_sequence ? 1 : state_.sizes.messages_in(request.bytes));
    resolve(state_.claims.take(max, request.suspects), deadline, result);
    if (in_sequence) {
      claim_first(max, request, deadline, result);
    } else {
      claim_many(max, request, deadline, result);
    }
    if (result.deliveries.empty() && result.error) {
      return *result.error;
    }
    for (const Delivery& delivery : result.deliveries) {
      state_.sizes.add(payload_bytes(delivery.message));
    }
    std::sort(result.deliveries.begin(), result.deliveries.end(), older);
    Claimed claimed{std::move(result.deliveries), result.next_due};
    if (!in_sequence && claimed.deliveries.size() < max) {
      claimed.next_due = backlog_.next_due(parts_.now());
    }
    return claimed;
  }

 private:
  /// What the tries of one call came to.
  struct Attempt {
    std::vector<Delivery> deliveries;
    std::optional<Error> error;  // the last failure, for a call that claims nothing
    bool stop = false;           // going on would meet the same failure
    std::optional<Duration> next_due;

    bool takes_more(std::size_t max) const {
      return deliveries.size() < max && !stop && (deliveries.empty() || !deliveries.front().suspect);
    }
  };

  core::ClaimTerms terms_of(const ClaimRequest& request) const {
    const WallTime now = parts_.clock.wall_now();
    return {now, later(now, request.visibility), request.counts};
  }

  Pick pick_for(std::size_t count, bool suspects, const ClaimRequest& request) const {
    return {count, suspects, terms_of(request)};
  }

  // A lease is a promise about time: half of it may be lost to a wrong clock, no more.
  Result<void> be_sure(Duration visibility, bool time_is_needed, Deadline deadline) {
    return time_is_needed ? parts_.clock.be_sure(place_, visibility / 2, deadline) : Result<void>();
  }

  void claim_many(std::size_t max, const ClaimRequest& request, Deadline deadline, Attempt& result) {
    for (int round = 0; round < kMaxRounds && result.takes_more(max); ++round) {
      const bool suspects = request.suspects && result.deliveries.empty();
      auto candidates =
          gather(pick_for(max - result.deliveries.size(), suspects, request), request, deadline, result.error);
      if (candidates.empty()) {
        return;
      }
      if (const auto sure = be_sure(request.visibility, true, deadline); !sure) {
        backlog_.put_back(std::move(candidates), parts_.now());
        result.error = sure.error();
        return;
      }
      attempt(std::move(candidates), request, deadline, result);
      if (!result.deliveries.empty() && !backlog_.backlog_unread()) {
        return;  // what else is due comes with the next call, whose Query also sees new arrivals
      }
    }
  }

  /// The oldest message of the half, where nothing of it is in flight or put off: DynamoMQ's FIFO mode, and as far as
  /// the index shows it. Go's consumers look at the first record alone. Looking at a few more finds what was claimed
  /// before an older message came to be seen in the index.
  void claim_first(std::size_t max, const ClaimRequest& request, Deadline deadline, Attempt& result) {
    if (!result.takes_more(max)) {
      return;
    }
    const auto page = parts_.client.query(query_of(place_, half_, {.limit = kSequenceLook}), deadline);
    const auto sure = page ? be_sure(request.visibility, true, deadline) : failure(page.error());
    if (!sure) {
      result.error = sure.error();
      return;
    }
    const WallTime now = parts_.clock.wall_now();
    std::vector<Candidate> first;
    std::optional<WallTime> waits_for;
    for (const dynamo::Item& item : page->items) {
      Candidate candidate = Candidate::of(item);
      if (candidate.state.is_in_flight(now) || (first.empty() && !waits_for && !candidate.due(now))) {
        waits_for = std::max(candidate.due_at(), waits_for.value_or(WallTime{}));
      } else if (first.empty() && !waits_for) {
        first.push_back(std::move(candidate));
      }
    }
    if (waits_for) {
      result.next_due = std::max(Duration(*waits_for - now), Duration::zero()) + Duration(1);
    } else if (!first.empty() && (request.suspects || !first.front().suspect())) {
      attempt(std::move(first), request, deadline, result);
    }
  }

  std::vector<Candidate> gather(Pick wanted, const ClaimRequest& request, Deadline deadline,
                                std::optional<Error>& error) {
    if (const auto step = backlog_.begin_side_scan(parts_.now())) {
      scan(*step, deadline);  // its failure is no reason not to claim
    }
    auto candidates = backlog_.pick(wanted, parts_.now());
    bool pass_ended = false;
    for (int pages = 0; pages < kMaxPages && candidates.size() < wanted.count && !pass_ended;) {
      if (has_suspect(candidates)) {
        return candidates;
      }
      const std::size_t more = wanted.count - candidates.size();
      const auto step = backlog_.begin_scan(parts_.now(), more, deadline);
      if (step) {
        error = scan(*step, deadline);
        if (error) {
          break;
        }
        const bool passes_on = !step->looks_back() && step->kind != ScanStep::Kind::leap;
        pages += passes_on ? 1 : 0;
        pass_ended = passes_on && !backlog_.backlog_unread();
      }
      auto found = backlog_.pick(pick_for(more, wanted.suspects && candidates.empty(), request), parts_.now());
      std::move(found.begin(), found.end(), std::back_inserter(candidates));
      if (!step) {
        break;
      }
    }
    return candidates;
  }

  Error failure(const dynamo::Error& error) {
    Error mapped = table::store_error(place_, error);
    if (mapped.code() == ErrorCode::queue_missing) {
      backlog_.restart();  // when the queue comes back, nothing of what was known will hold
    }
    return mapped;
  }

  std::optional<Error> scan(ScanStep step, Deadline deadline) {
    auto page = parts_.client.query(query_of(place_, half_, step), deadline);
    if (!page) {
      backlog_.end_scan(step, nullptr);
      return failure(page.error());
    }
    // The answer may have told how wrong the time was by which the step was made.
    step.at.wall = parts_.clock.wall_now() - (parts_.clock.steady_now() - step.at.steady);
    backlog_.end_scan(step, &*page);
    return std::nullopt;
  }

  void attempt(std::vector<Candidate> candidates, const ClaimRequest& request, Deadline deadline, Attempt& result) {
    const SteadyTime leased_until = table::until(parts_.clock.steady_now(), request.visibility);
    const core::ClaimTerms terms = terms_of(request);
    std::vector<std::string> nonces;
    std::vector<table::RecordWrite> writes;
    for (const auto& candidate : candidates) {
      nonces.push_back(parts_.nonces.next());
      writes.push_back(update_of(kNames, place_.table, {candidate.id, candidate.version, half_, {}, candidate.sort_key},
                                 {nonces.back(), terms.now}, attributes_of(kNames, core::claim(candidate.state, terms)),
                                 true));
    }
    auto outcomes = parts_.runner.run(std::move(writes), table::Repetition::none, deadline);
    std::vector<UnresolvedClaim> unknown;
    std::vector<Candidate> lost;
    std::vector<Candidate> back;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Candidate& candidate = candidates[i];
      table::StatementOutcome& outcome = outcomes[i];
      switch (fate_of(outcome, nonces[i])) {
        case table::StatementFate::done:
          hand_out(outcome.item, candidate, leased_until, result);
          break;
        case table::StatementFate::refused:
          lost.push_back(std::move(candidate));
          break;
        case table::StatementFate::unknown:
          outcome.error.outcome_unknown = false;  // what came of it is looked up below
          result.error = table::store_error(place_, outcome.error);
          unknown.push_back({std::move(candidate), nonces[i], leased_until});
          break;
        case table::StatementFate::failed:
          result.error = failure(outcome.error);
          if (outcome.error.kind == dynamo::ErrorKind::validation) {
            // Only this record cannot be claimed, such as one so near the size limit that nothing can be added to it.
            candidate.state.hidden_until = parts_.clock.wall_now() + kUnclaimableRest;
            backlog_.keep(std::move(candidate));
          } else {
            result.stop = true;
            back.push_back(std::move(candidate));
          }
          break;
      }
    }
    const table::Moment now = parts_.now();
    backlog_.put_back(std::move(back), now);
    backlog_.lost(lost, now);
    resolve(std::move(unknown), deadline, result);
  }

  /// An answer without the message tells nothing: what it says cannot be handed out.
  static table::StatementFate fate_of(table::StatementOutcome& outcome, const std::string& nonce) {
    const bool without_item = outcome.fate == table::StatementFate::done && nonce_of(outcome.item) != nonce;
    if (!without_item || !SLUICE_GUARD(empty_update_answer)) {
      return outcome.fate;
    }
    outcome.error = dynamo::Error(dynamo::ErrorKind::malformed_response, "a claim was answered without its item");
    return table::StatementFate::unknown;
  }

  /// `before` is the record as it was claimed, or as it was read afterwards.
  void hand_out(const dynamo::Item& item, const Candidate& before, SteadyTime leased_until, Attempt& result) {
    result.deliveries.push_back(delivery_of(item, before, leased_until));
    backlog_.claimed(Candidate::of(item));
  }

  void resolve(std::vector<UnresolvedClaim> claims, Deadline deadline, Attempt& result) {
    std::set<std::string> ids;
    for (const UnresolvedClaim& claim : claims) {
      ids.insert(claim.candidate.id);
    }
    const auto records = layout_.find(ids, deadline);
    if (!records) {
      for (auto& claim : claims) {
        state_.claims.remember(std::move(claim));
      }
      result.error = table::store_error(place_, records.error());
      result.stop = true;
      return;
    }
    const table::Moment now = parts_.now();
    for (auto& claim : claims) {
      const table::FoundRecord& found = records->at(claim.candidate.id);
      if (!found.there()) {
        backlog_.forget(claim.candidate.id);
        continue;
      }
      Candidate current = Candidate::of(found.item);
      // A program of DynamoMQ that has claimed it since leaves our nonce where it is, and counts the version on.
      const bool ours = current.nonce == claim.nonce && current.version.number == claim.candidate.version.next();
      if (!ours) {
        // It has not taken effect, at least so far, or somebody else has claimed the message since.
        backlog_.disown(current, claim.nonce);
      } else if (!current.due(now.wall) && now.steady < claim.leased_until) {
        const SteadyTime ends = SLUICE_GUARD(lease_end_from_store) ? claim.leased_until : SteadyTime::max();
        hand_out(found.item, current, ends, result);
      } else {
        // Ours, but so late that the lease has run out: the next claim takes it again, and does not count this one.
        current.never_arrived();
        backlog_.keep(std::move(current));
      }
    }
  }

  const table::RecordLayout& layout_;
  const table::StoreParts& parts_;
  const table::QueueTable& place_;
  Half half_;
  HalfState& state_;
  HalfBacklog& backlog_;
};

/// Settles and extends deliveries of one queue half, each conditional on the time at which its message was sent, too.
/// Made for one call. Not thread-safe.
class CompletionWriter final : public table::DeliveryWriter {
 public:
  CompletionWriter(QueueState& queue, Half half)
      : DeliveryWriter(*queue.layout, queue.state_of(half).doubts, queue.state_of(half).transactions),
        half_(half),
        state_(queue.state_of(half)) {}

  using DeliveryWriter::settle;

 private:
  // The claims of this store are remembered. Of those that another one made, and hands its receipts on, the records
  // tell.
  void find(std::span<const Completion> /*completions*/, Deadline deadline) override {
    std::set<std::string> unknown;
    for (Lease& lease : leases_) {
      const Receipt& receipt = *lease.receipt;
      lease.record = {receipt.id, table::VersionMark::number_of(receipt.version), half_};
      if (auto known = state_.backlog.lease_of(receipt)) {
        hold(lease, *std::move(known));
      } else {
        unknown.insert(receipt.id);
      }
    }
    const auto records = layout_.find(unknown, deadline);
    for (Lease& lease : leases_) {
      if (lease.record.sent_at) {
        continue;
      }
      if (records) {
        hold(lease, Candidate::of(records->at(lease.receipt->id).item));
      } else if (SLUICE_GUARD(settle_fence_sent_at)) {
        // Without the time, a message that was sent again could be taken for this one.
        lease.decided = SettleResult{SettleStatus::failed, table::store_error(place_, records.error())};
      }
    }
  }

  // No record has an empty time: what is not there, or is a later message's by now, is not written.
  static void hold(Lease& lease, Candidate record) {
    const bool is_of_it = may_be_of(*lease.receipt, record.sort_key);
    lease.record.sent_at = is_of_it ? std::move(record.sort_key) : std::string();
    lease.state = std::move(record.state);
  }

  void written(const table::DeliveryWrite& write, SettleResult& result) override {
    if (result.status == SettleStatus::applied) {
      state_.backlog.written(*write.receipt, write.version(), write.change, parts_.clock.wall_now());
    } else if (result.status == SettleStatus::lost) {
      state_.backlog.forget_receipt(*write.receipt);
    }
  }

  const Half half_;
  HalfState& state_;
};

/// The source of one queue half. Each delivery has a lease of its own; suspects are known by what their records say of
/// the delivery before.
class DynamoMqSource final : public Source {
 public:
  /// The queue must outlive the source.
  DynamoMqSource(QueueState& queue, Half half)
      : queue_(queue), address_{queue.layout->place().queue, half}, doorbell_(queue.layout->parts().doorbell) {}

  const SourceTraits& traits() const override { return kDynamoMqTraits; }
  void start(SourceEvents events) override {
    if (events.on_ready) {
      auto subscription = doorbell_.subscribe(address_, std::move(events.on_ready));
      const MutexLock lock(mutex_);
      std::swap(subscription_, subscription);
    }
  }

  void stop() override {
    Doorbell::Subscription ended;
    {
      const MutexLock lock(mutex_);
      std::swap(subscription_, ended);
    }
    // Here it ends, without the lock: that waits for a call of the listener, which may be about to claim.
  }

  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override {
    if (request.rules.max_in_flight > 0) {
      return Error(ErrorCode::invalid,
                   "queue " + address_.queue +
                       " lies in a DynamoDB table, where nobody can count what is in flight without "
                       "reading all of it; leave max_in_flight out, or have the queue on SQLite");
    }
    if (request.rules.order == Order::queue) {
      in_sequence_ = true;
    }
    return Claimer(queue_, address_.half).claim(request, deadline);
  }

  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override {
    auto results = CompletionWriter(queue_, address_.half).settle(completions, deadline);
    bool ended = false;
    for (std::size_t i = 0; i < results.size(); ++i) {
      ended = ended || has_ended(completions[i], results[i]);
    }
    if (in_sequence_ && ended) {
      doorbell_.ring_here(address_);  // the next one may go; other hosts see it when they look
    }
    doorbell_.ring_settled(address_, completions, results);
    return results;
  }

  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override {
    return CompletionWriter(queue_, address_.half).extend(receipts, visibility, deadline);
  }

 private:
  // Fixed after construction.
  QueueState& queue_;
  const QueueAddress address_;
  Doorbell& doorbell_;

  std::atomic<bool> in_sequence_ = false;  ///< claims want one message after the other

  Mutex mutex_;
  // Guarded by mutex_.
  Doorbell::Subscription subscription_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Source> make_source(QueueState& queue, Half half) {
  return std::make_unique<DynamoMqSource>(queue, half);
}

}  // namespace sluice::queue::dynamomq
