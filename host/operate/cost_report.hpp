#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ranges.hpp"
#include "host/cost/prices.hpp"
#include "host/fleet/fleet.hpp"
#include "host/operate/describe.hpp"

namespace sluice::operate {

/// What the work on queues has cost, as the hosts that are alive tell it. A value.
struct CostSummary {
  struct Row {
    std::string queue;
    std::string job;  ///< cost::kShared: of none
    std::uint32_t hosts = 0;
    std::uint32_t held_hosts = 0;  ///< whose budget holds the job back
    cost::Usage hour;              ///< of the last hour
    double per_hour = 0;           ///< money, at the pace of the time that is covered
  };

  std::vector<Row> rows;  ///< by queue, the dearest job first
  std::string attribute;
  std::vector<cost::TopValues::Named> values;  ///< since the start of the hosts that tell of them, the dearest first
  std::uint32_t hosts = 0;                     ///< that tell
  std::uint32_t silent = 0;                    ///< that tell nothing any more, and have not said that they have ended
  Duration covered{};                          ///< of the last hour, by the host that covers most
  Duration shortest{};                         ///< by the one that covers least

  cost::Usage total() const;
  double per_hour() const;
};

/// `queue`: of that one alone; empty: of all. Values are never of one queue alone.
CostSummary summarize_costs(const fleet::FleetView& view, const std::string& queue, const cost::Prices& prices);

/// A part of what was spent, and by which prices it is shown. Borrows.
template <typename Part>
struct Priced {
  const Part& part;
  const cost::Prices& prices;
};
template <typename Part>
std::vector<Priced<Part>> priced(const std::vector<Part>& parts, const cost::Prices& prices) {
  return mapped(parts, [&prices](const Part& part) { return Priced<Part>{part, prices}; });
}

void describe(const Priced<CostSummary::Row>& row, Fields& fields);
void describe(const Priced<cost::TopValues::Named>& value, Fields& fields);
void describe(const Priced<cost::LayoutCost>& layout, Fields& fields);
/// The sums, rows and values, for programs alone.
void describe(const Priced<CostSummary>& costs, Fields& fields);

}  // namespace sluice::operate
