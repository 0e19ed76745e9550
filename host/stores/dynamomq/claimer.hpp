#pragma once

#include <vector>

#include "host/queue/source.hpp"
#include "host/stores/dynamomq/queue_state.hpp"
#include "host/stores/dynamomq/record_changes.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// Claims messages of one queue half. Thread-safe.
class Claimer {
 public:
  static constexpr int kMaxRounds = 4;                                    ///< of picking, as long as races are lost
  static constexpr int kMaxPages = 8;                                     ///< of reading, in one call
  static constexpr Duration kUnclaimableRest = std::chrono::seconds(60);  ///< of a record that refuses any claim

  static constexpr std::size_t kWinnersLookedAt = 4;

  Claimer(table::StoreParts parts, const table::QueueTable& place, Half half, HalfState& state)
      : parts_(parts), place_(place), half_(half), lane_(state.lane), state_(state), build_(place.table) {}

  /// As Source::claim. A lost race is no error, nor is a failed request after others have succeeded.
  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline);

 private:
  struct Attempt;

  Result<void> be_sure(Duration visibility, bool time_is_needed, Deadline deadline);
  Pick pick_for(std::size_t count, bool suspects, const ClaimRequest& request) const;
  /// The oldest message of the half, where nothing of it is in flight or put off: DynamoMQ's FIFO mode, and as far as
  /// the index shows it.
  Result<Claimed> claim_in_sequence(const ClaimRequest& request, Deadline deadline);
  std::vector<Candidate> gather(Pick wanted, const ClaimRequest& request, Deadline deadline,
                                std::optional<Error>& error);
  Error failure(const dynamo::Error& error);
  std::optional<Error> scan(ScanStep step, Deadline deadline);
  void attempt(std::vector<Candidate> candidates, const ClaimRequest& request, Deadline deadline, Attempt& result);
  void sort_out(std::vector<Candidate>& candidates, std::vector<table::StatementOutcome>& outcomes,
                SteadyTime leased_until, Deadline deadline, Attempt& result);
  void resolve(std::vector<UnresolvedClaim> claims, Deadline deadline, Attempt& result);
  void look_for_winner(const std::vector<Candidate>& lost, Deadline deadline);

  table::StoreParts parts_;
  const table::QueueTable& place_;
  Half half_;
  HalfBacklog& lane_;
  HalfState& state_;
  WriteBuilder build_;
};

}  // namespace sluice::queue::dynamomq
