#include "host/cost/prices.hpp"

#include <gtest/gtest.h>

namespace sluice::cost {
namespace {

TEST(Prices, AreDynamoDbsOnDemandUnlessTheFileHasOthers) {
  EXPECT_DOUBLE_EQ(Prices().of({0, 0, 1e6}), 0.625);
  EXPECT_DOUBLE_EQ(Prices().of({0, 1e6, 0}), 0.125);
  EXPECT_DOUBLE_EQ(Prices().of({1e6, 0, 0}), 0) << "DynamoDB does not charge for requests";
  EXPECT_DOUBLE_EQ(Prices().of_sqs_requests(1e6), 0.40);
  EXPECT_DOUBLE_EQ(Prices().of_sqs_fifo_requests(1e6), 0.50);
  EXPECT_DOUBLE_EQ(Prices().of_storage(4.0 * 1024 * 1024 * 1024), 1);
  EXPECT_EQ(Prices().origin(), "DynamoDB on demand in us-east-1, as of 2026-11-01");
  config::CostConfig own;
  own.currency = "EUR";
  own.write_unit = 2;
  own.sqs_fifo_request = 3;
  own.as_of = "2026-11-20";
  own.own_prices = true;
  EXPECT_DOUBLE_EQ(Prices(own).of({0, 0, 1e6}), 2);
  EXPECT_DOUBLE_EQ(Prices(own).of_sqs_fifo_requests(1e6), 3);
  EXPECT_EQ(Prices(own).origin(), "[cost] of the host file, as of 2026-11-20");
}

TEST(Prices, AreWrittenWithTwoDigitsThatSaySomething) {
  const Prices prices;
  EXPECT_EQ(prices.text(0), "$0.00");
  EXPECT_EQ(prices.text(1.284), "$1.28");
  EXPECT_EQ(prices.text(1234), "$1234.00");
  EXPECT_EQ(prices.text(0.00000125), "$0.0000013");
  config::CostConfig own;
  own.currency = "EUR";
  EXPECT_EQ(Prices(own).text(0.5), "EUR 0.50");
}

TEST(Layouts, ComeToWhatTheFactsSayOfAMillionMessages) {
  const auto all = layouts_of({.spent = {}, .messages = 1e6, .kib = 1e6, .indexed_kib = 1e6}, Prices());
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].layout, "dynamomq");
  EXPECT_DOUBLE_EQ(all[0].whole.write_units, 6e6);
  EXPECT_NEAR(all[0].money_whole, 3.76, 0.01);
  EXPECT_EQ(all[1].layout, "leased");
  EXPECT_DOUBLE_EQ(all[1].whole.write_units, 2e6);
  EXPECT_DOUBLE_EQ(all[1].whole.read_units, 0.2e6);
  EXPECT_DOUBLE_EQ(all[1].whole.requests, 0.1e6);
  EXPECT_NEAR(all[1].money_whole, 1.28, 0.01);
  EXPECT_EQ(all[2].layout, "sqs");
  EXPECT_NEAR(all[2].money_whole, 0.12, 0.001);
  EXPECT_NEAR(all[2].money_whole_most, 1.20, 0.001);
  EXPECT_EQ(all[3].layout, "sqlite");
  EXPECT_EQ(all[3].money_whole, 0);
}

TEST(Layouts, CountWholeKib) {
  const auto all = layouts_of({.spent = {}, .messages = 1000, .kib = 4000, .indexed_kib = 5000}, Prices());
  EXPECT_DOUBLE_EQ(all[0].whole.write_units, 30'000) << "whose records take more beside the body";
  EXPECT_DOUBLE_EQ(all[1].whole.write_units, 8000);
  EXPECT_DOUBLE_EQ(all[2].whole.requests, 300) << "SQS bills 64 KiB as one";
  const auto old = layouts_of({.spent = {}, .messages = 1000, .kib = 4000}, Prices());
  EXPECT_DOUBLE_EQ(old[0].whole.write_units, 24'000) << "of a host that tells of no other size";
}

TEST(Layouts, CountTheStorageOfWhatLayThere) {
  const double month = kHoursPerMonth * 3600;
  const double million = 1e6;
  // A million messages of 914 bytes that are put and taken away all the time, so that so many lie there for a month.
  const Usage usage{.spent = {},
                    .messages = million,
                    .kib = million,
                    .indexed_kib = 2 * million,
                    .message_seconds = million * month,
                    .kib_seconds = million * month * 914 / 1024};
  const auto all = layouts_of(usage, Prices());
  const double gigabyte = 1024.0 * 1024 * 1024;
  EXPECT_NEAR(all[1].storage, 0.25 * million * (914 + 10 + 100) / gigabyte, 1e-9);
  EXPECT_NEAR(all[0].storage, 0.25 * 2 * million * (914 + 217 + 100) / gigabyte, 1e-9) << "in the table and its index";
  EXPECT_EQ(all[2].storage, 0);
  EXPECT_EQ(all[3].storage, 0);
  EXPECT_DOUBLE_EQ(all[1].money_whole, Prices().of(all[1].whole) + all[1].storage);
  EXPECT_DOUBLE_EQ(all[1].money_whole_most, all[1].money_whole);
}

}  // namespace
}  // namespace sluice::cost
