#include "host/cli/views/cost_report.hpp"

#include <algorithm>

#include "base/text/decimal.hpp"
#include "host/cli/options.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

std::string layouts_text(const operate::CostSummary& costs, const cost::Prices& prices, bool colours) {
  const cost::Usage total = costs.total();
  if (total.messages <= 0) {
    return {};
  }
  return "\nThe same " + fixed_decimal(total.messages, 0) + " messages, " + fixed_decimal(total.kib, 0) +
         " KiB by begun KiB, would come to (WCU, RCU and WITH SENDING count their senders' part too, and WITH SENDING "
         "the storage of what lay there, due, until it was handed out):\n" +
         rows_of(operate::priced(cost::layouts_of(total, prices), prices), {}, {.colours = colours});
}

/// How far the figures reach.
std::string reach_text(const operate::CostSummary& costs, const cost::Prices& prices) {
  std::string text = "\nAs " + counted(costs.hosts, "host") + (costs.hosts == 1 ? " tells" : " tell") +
                     ", of the last " + short_duration(costs.covered);
  if (costs.shortest < costs.covered) {
    text += " (the youngest: " + short_duration(costs.shortest) + ")";
  }
  text += "; hosts that have ended tell nothing";
  if (costs.silent > 0) {
    text += ", nor " +
            (costs.silent == 1 ? std::string("does 1 that is") : "do " + std::to_string(costs.silent) + " that are") +
            " silent";
  }
  return text + ".\nPrices: " + prices.origin() + ".\n";
}

}  // namespace

std::string cost_rows_text(const operate::CostSummary& costs, const cost::Prices& prices, bool colours) {
  if (costs.rows.empty()) {
    return "no host tells what it has spent; `sluice hosts` lists those that are alive\n";
  }
  const bool embedded =
      std::any_of(costs.rows.begin(), costs.rows.end(), [](const auto& row) { return row.hour.spent.none(); });
  return rows_of(operate::priced(costs.rows, prices), {}, {.colours = colours}) +
         (embedded ? "embedded: the store is a file of the host's, or a database; nothing is billed by the request.\n"
                   : "");
}

std::string cost_text(const operate::CostSummary& costs, const cost::Prices& prices, bool colours) {
  std::string text = cost_rows_text(costs, prices, colours);
  if (costs.rows.empty()) {
    return text;
  }
  if (!costs.values.empty()) {
    text += "\nBy " + costs.attribute + ", of all queues, since the hosts that tell of it began:\n" +
            rows_of(operate::priced(costs.values, prices), {}, {.colours = colours});
  }
  return text + layouts_text(costs, prices, colours) + reach_text(costs, prices);
}

std::string cost_json(const operate::CostSummary& costs, const cost::Prices& prices) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  operate::Fields fields(json, {});
  describe(operate::Priced<operate::CostSummary>{costs, prices}, fields);
  fields.records("layouts", operate::priced(cost::layouts_of(costs.total(), prices), prices));
  json.end_object();
  return json.take_line();
}

}  // namespace sluice::cli
