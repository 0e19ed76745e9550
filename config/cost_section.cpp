#include "config/cost_section.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/plain_reads.hpp"

namespace sluice::config {

namespace {

constexpr std::size_t kCurrencyLetters = 3;
constexpr std::uint32_t kMostValues = 200;

const char* currency_complaint(const std::string& text) {
  const bool letters = std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return text.size() == kCurrencyLetters && letters ? nullptr : "three capital letters, such as \"USD\"";
}

}  // namespace

void read_cost(Section cost, Reader& reader, HostConfig& config) {
  CostConfig& read = config.cost;
  struct Price {
    const char* key;
    double* target;
    const char* example;
  };
  const std::array<Price, 5> prices{{{"write_unit", &read.write_unit, "0.625 for a million of them"},
                                     {"read_unit", &read.read_unit, "0.125 for a million of them"},
                                     {"storage", &read.storage, "0.25 for a GB and month"},
                                     {"sqs_request", &read.sqs_request, "0.40 for a million of them"},
                                     {"sqs_fifo_request", &read.sqs_fifo_request, "0.50 for a million of them"}}};
  cost.read("currency", read.currency, currency_complaint);
  const Member* first = cost.find("currency");
  for (const Price& price : prices) {
    read_amount(cost, reader, price.key, *price.target, false, price.example);
    const Member* member = cost.find(price.key);
    first = first == nullptr ? member : first;
  }
  read_day(cost, reader, "as_of", read.as_of);
  read.own_prices = first != nullptr;
  if (read.own_prices && cost.find("as_of") == nullptr) {
    reader.error(first->place, cost.naming(first->key) +
                                   "is a price of some day: say of which one beside it, as in as_of = 2026-11-01");
  }
  cost.read("attribute", read.attribute, label_complaint);
  cost.read("top", read.top, 1, kMostValues);
}

void read_budget(Section& section, Reader& reader, StoreKind kind, QueueConfig& queue) {
  read_amount(section, reader, "max_write_units", queue.max_write_units, true, "100 for 100 write units a second");
  read_amount(section, reader, "max_read_units", queue.max_read_units, true, "50 for 50 read units a second");
  for (const char* key : {"max_write_units", "max_read_units"}) {
    if (const Member* limit = section.find(key); limit != nullptr && kind == StoreKind::sqlite) {
      reader.error(limit->place, section.naming(key) +
                                     "needs a queue in a DynamoDB table: SQLite is embedded and has no capacity to "
                                     "keep below; limit the job with 'rate_limit' instead");
    }
  }
}

}  // namespace sluice::config
