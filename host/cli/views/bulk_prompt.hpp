#pragma once

#include <cstdint>
#include <optional>

#include "host/cli/command.hpp"
#include "host/cli/console.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/bulk_report.hpp"
#include "host/operate/bulk_run.hpp"

namespace sluice::cli {

/// How many messages a run will change, as far as somebody has counted.
struct Expected {
  std::optional<std::uint64_t> messages;
};

/// Asks whether to do what the plan says, and says in numbers what that is: the limit, what a filter matches (it is
/// counted first, for a few seconds at most), what stays because it is in flight. Without a terminal it wants --yes.
/// Nothing is asked for a dry run, for --yes, and for messages that are named one by one.
OrExit<Expected> agree(QueueSession& session, const operate::BulkPlan& plan, BulkWords words,
                       const Arguments& arguments, Console& console);

}  // namespace sluice::cli
