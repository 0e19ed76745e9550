#include "host/stores/dynamomq/claimer.hpp"

#include <algorithm>

namespace sluice::queue::dynamomq {
namespace {

// The attributes that a candidate is made of. The units read are those of whole items all the same.
constexpr const char* kCandidateProjection = "id, #version, sent_at, receive_count, invisible_until_at, sluice_nonce";

dynamo::QueryRequest query_of(const QueueTable& place, QueueType type, const ScanStep& step) {
  dynamo::QueryRequest query;
  query.table = place.table;
  query.index = place.index;
  query.key_condition = "queue_type = :type";
  query.values.emplace(":type", std::string(to_string(type)));
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

Claim claim_of(const dynamo::Item& item, const Candidate& candidate) {
  StoredMessage record = decode_record(item);
  Claim claim;
  claim.receipt = {candidate.id, record.version, make_locator(record.message.attempt, candidate.sort_key)};
  claim.invisible_until = record.invisible_until.value_or(WallTime{});
  claim.message = std::move(record.message);
  claim.message.id = candidate.id;
  return claim;
}

bool older(const Claim& a, const Claim& b) {
  return std::tie(a.message.sent_at, a.message.id) < std::tie(b.message.sent_at, b.message.id);
}

}  // namespace

/// What the tries of one call came to.
struct Claimer::Attempt {
  std::vector<Claim> claims;
  std::optional<Error> error;  // the last failure, for a call that claims nothing
  bool stop = false;           // going on would meet the same failure
};

Result<std::vector<Claim>> Claimer::claim(std::size_t max, Duration visibility, Deadline deadline) {
  Attempt result;
  if (auto unresolved = lane_.take_unresolved(max); !unresolved.empty()) {
    resolve(std::move(unresolved), deadline, result);
  }
  for (int round = 0; round < kMaxRounds && result.claims.size() < max && !result.stop; ++round) {
    auto candidates = gather(max - result.claims.size(), visibility, deadline, result.error);
    if (candidates.empty()) {
      break;
    }
    attempt(std::move(candidates), visibility, deadline, result);
    if (!result.claims.empty() && !lane_.backlog_unread()) {
      break;  // what else is due comes with the next call, whose Query also sees new arrivals
    }
  }
  if (result.claims.empty() && result.error) {
    return *result.error;
  }
  lane_.claimed(result.claims);
  std::sort(result.claims.begin(), result.claims.end(), older);
  return std::move(result.claims);
}

std::vector<Candidate> Claimer::gather(std::size_t want, Duration visibility, Deadline deadline,
                                       std::optional<Error>& error) {
  auto candidates = lane_.pick(want, parts_.now(), later(parts_.clock.wall_now(), visibility));
  bool pass_ended = false;
  for (int page = 0; page < kMaxPages && candidates.size() < want && !pass_ended; ++page) {
    const auto step = lane_.begin_scan(parts_.now(), want - candidates.size(), deadline);
    if (step) {
      error = scan(*step, deadline);
      if (error) {
        break;
      }
      pass_ended = !lane_.backlog_unread();
    }
    auto more = lane_.pick(want - candidates.size(), parts_.now(), later(parts_.clock.wall_now(), visibility));
    std::move(more.begin(), more.end(), std::back_inserter(candidates));
    if (!step) {
      break;
    }
  }
  if (const auto step = lane_.begin_unsorted_scan(parts_.now())) {
    scan(*step, deadline);
  }
  return candidates;
}

Error Claimer::failure(const dynamo::Error& error) {
  Error mapped = store_error(place_, error);
  if (mapped.code() == ErrorCode::queue_missing) {
    lane_.restart();  // when the queue comes back, nothing of what was known will hold
  }
  return mapped;
}

std::optional<Error> Claimer::scan(const ScanStep& step, Deadline deadline) {
  auto page = parts_.client.query(query_of(place_, type_, step), deadline);
  if (!page) {
    lane_.abandon_scan();
    return failure(page.error());
  }
  lane_.end_scan(step, *page);
  return std::nullopt;
}

void Claimer::attempt(std::vector<Candidate> candidates, Duration visibility, Deadline deadline, Attempt& result) {
  std::vector<KeyedStatement> statements;
  std::vector<std::string> nonces;
  statements.reserve(candidates.size());
  const WallTime now = parts_.clock.wall_now();
  for (const auto& candidate : candidates) {
    nonces.push_back(parts_.nonces.next());
    statements.push_back(build_.update({candidate.id, candidate.version, type_, {}, candidate.sort_key},
                                       {nonces.back(), now},
                                       claim_change(candidate.receive_count + 1, now, later(now, visibility)), true));
  }
  auto outcomes = parts_.runner.run(std::move(statements), Repetition::none, deadline);
  std::vector<UnresolvedClaim> unknown;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (outcomes[i].fate == StatementFate::unknown) {
      outcomes[i].error.outcome_unknown = false;  // what came of it is looked up below
      result.error = store_error(place_, outcomes[i].error);
      unknown.push_back({candidates[i], nonces[i]});
    }
  }
  sort_out(candidates, outcomes, deadline, result);
  if (!unknown.empty()) {
    resolve(std::move(unknown), deadline, result);
  }
}

void Claimer::sort_out(std::vector<Candidate>& candidates, std::vector<StatementOutcome>& outcomes, Deadline deadline,
                       Attempt& result) {
  std::vector<Candidate> lost;
  std::vector<Candidate> back;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    StatementOutcome& outcome = outcomes[i];
    switch (outcome.fate) {
      case StatementFate::done:
        result.claims.push_back(claim_of(outcome.item, candidates[i]));
        break;
      case StatementFate::refused:
        lost.push_back(std::move(candidates[i]));
        break;
      case StatementFate::unknown:
        break;
      case StatementFate::failed:
        result.error = failure(outcome.error);
        if (outcome.error.kind == dynamo::ErrorKind::validation) {
          // Only this record cannot be claimed, such as one so near the size limit that nothing can be added to it.
          candidates[i].invisible_until = parts_.clock.wall_now() + kUnclaimableRest;
          lane_.keep(std::move(candidates[i]));
        } else {
          result.stop = true;
          back.push_back(std::move(candidates[i]));
        }
        break;
    }
  }
  const Moment now = parts_.now();
  lane_.put_back(std::move(back), now);
  lane_.lost(lost, now);
  if (!lost.empty() && lane_.should_look_for_winner(now)) {
    look_for_winner(lost, deadline);
  }
}

void Claimer::resolve(std::vector<UnresolvedClaim> claims, Deadline deadline, Attempt& result) {
  std::vector<std::string> ids;
  for (const auto& claim : claims) {
    ids.push_back(claim.candidate.id);
  }
  auto records = parts_.runner.read(place_.table, ids, deadline);
  if (!records) {
    for (auto& claim : claims) {
      lane_.remember_unresolved(std::move(claim));
    }
    result.error = store_error(place_, records.error());
    result.stop = true;
    return;
  }
  const Moment now = parts_.now();
  for (auto& claim : claims) {
    const auto found = records->find(claim.candidate.id);
    if (found == records->end()) {
      lane_.forget(claim.candidate.id);
      continue;
    }
    Candidate current = Candidate::of(found->second);
    if (current.nonce != claim.nonce) {
      // It has not taken effect, at least so far, or somebody else has claimed the message since.
      lane_.forget(claim.candidate.id);
      lane_.remember_late(claim.candidate.id, claim.nonce);
      lane_.expect(current.due_at());
    } else if (!current.due(now.wall)) {
      result.claims.push_back(claim_of(found->second, current));
    } else {
      // Ours, but so late that the lease has run out: the next claim takes it again, and does not count this one.
      current.receive_count -= current.receive_count > 0 ? 1 : 0;
      lane_.keep(std::move(current));
    }
  }
}

void Claimer::look_for_winner(const std::vector<Candidate>& lost, Deadline deadline) {
  // The last ones lost are the likeliest to be there still: winners work off the oldest first.
  std::vector<std::string> ids;
  for (auto next = lost.rbegin(); next != lost.rend() && ids.size() < kWinnersLookedAt; ++next) {
    ids.push_back(next->id);
  }
  if (const auto records = parts_.runner.read(place_.table, ids, deadline)) {
    for (const auto& [id, record] : *records) {
      lane_.saw_peer(nonce_of(record), parts_.now());
    }
  }
}

}  // namespace sluice::queue::dynamomq
