#pragma once

#include <string>
#include <string_view>

#include "base/text/json_writer.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/queue/effects.hpp"
#include "host/runtime/host_queues.hpp"

namespace sluice::cli {

/// What a handler made of one message, for `sluice dry-run`. Borrows.
struct DryRun {
  std::string_view job;
  std::string_view queue;
  std::string_view id;
  sluice_store store = SLUICE_STORE_NONE;  ///< as plugin::EffectRules
  bool keeps_key = false;                  ///< the job has idempotency, so that its key is remembered
  const plugin::Outcome& outcome;
  std::string refused{};  ///< why the store would not commit it; empty: nothing is known against it
};

/// Why a host would not commit what the handler staged, as far as that shows without a try; empty: nothing is known.
/// `queues`: those of the host file, to see which of them are known; null: nobody looks.
std::string refused_sends(const config::HostConfig& host, runtime::HostQueues* queues, const std::string& queue,
                          const plugin::Outcome& outcome);

/// Each action of the transaction that would end the message, for people; that there is none, for another outcome.
std::string transaction_text(const DryRun& run);
/// The same as one JSON value; null where there is none.
void write_transaction(const DryRun& run, JsonWriter& json);
/// The outcome, and each action of the transaction in DynamoDB's or SQL's words, for people.
std::string dry_run_text(const DryRun& run);
/// The same as one JSON object; writes to DynamoDB are members of TransactItems as its API has them.
void write_dry_run(const DryRun& run, JsonWriter& json);

}  // namespace sluice::cli
