#include "host/cost/prices.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace sluice::cost {
namespace {

constexpr double kMillion = 1e6;
constexpr double kGigabyte = 1024.0 * 1024 * 1024;  // as AWS bills it
constexpr int kMostDigits = 10;

}  // namespace

double Prices::of(const Spent& spent) const {
  return (spent.read_units * config_.read_unit + spent.write_units * config_.write_unit) / kMillion;
}

double Prices::of_sqs_requests(double requests) const { return requests * config_.sqs_request / kMillion; }

double Prices::of_sqs_fifo_requests(double requests) const { return requests * config_.sqs_fifo_request / kMillion; }

double Prices::of_storage(double bytes) const { return bytes * config_.storage / kGigabyte; }

std::string Prices::text(double money) const {
  int digits = 2;
  while (money > 0 && digits < kMostDigits && money * std::pow(10, digits) < 10) {
    ++digits;
  }
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, money);
  return (config_.currency == "USD" ? "$" : config_.currency + " ") + text.data();
}

std::string Prices::origin() const {
  return (config_.own_prices ? "[cost] of the host file" : "DynamoDB on demand in us-east-1") +
         std::string(", as of ") + config_.as_of;
}

}  // namespace sluice::cost
