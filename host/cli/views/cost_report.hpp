#pragma once

#include <string>

#include "base/text/json_writer.hpp"
#include "host/operate/cost_report.hpp"

/// What work has cost, as rows for people and as JSON for programs. Pure functions.
namespace sluice::cli {

/// By queue and job, by value of the attribute, what other layouts would have cost, and by which prices.
std::string cost_text(const operate::CostSummary& costs, const cost::Prices& prices, bool colours);
std::string cost_json(const operate::CostSummary& costs, const cost::Prices& prices);

/// The rows alone; a line instead where there are none.
std::string cost_rows_text(const operate::CostSummary& costs, const cost::Prices& prices, bool colours);

}  // namespace sluice::cli
