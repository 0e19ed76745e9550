#include "host/cli/views/transaction_report.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::cli {
namespace {

using queue::Effects;
using queue::EffectWrite;
using queue::ItemAction;
using queue::ItemWrite;
using queue::OnRefusal;

plugin::Outcome with_items() {
  auto effects = std::make_shared<Effects>();
  effects->messages.push_back(
      {"receipts", {.id = "r", .body = "a\x1b[2J", .group = "g", .delay = std::chrono::seconds(3)}});
  effects->writes.push_back({ItemWrite{ItemAction::update,
                                       "accounts",
                                       R"({"id":{"S":"a"}})",
                                       "SET #b = #b - :n",
                                       "#b >= :n",
                                       {{"#b", "balance"}},
                                       R"({":n":{"N":"10"}})"},
                             "debit", OnRefusal::reject});
  effects->writes.push_back({ItemWrite{ItemAction::put, "log", R"({"id":{"S":"x"}})"}, ""});
  effects->writes.push_back({ItemWrite{ItemAction::remove, "log", R"({"id":{"S":"y"}})"}, ""});
  effects->writes.push_back(
      {ItemWrite{ItemAction::check, "log", R"({"id":{"S":"z"}})", "", "attribute_exists(id)"}, ""});
  effects->key = queue::KeyRecord{{}, {}, "moved", {}};
  return {plugin::OutcomeStatus::done, {}, {}, effects};
}

TEST(TransactionReport, WritesOfItemsAreInDynamoDbsWords) {
  const plugin::Outcome outcome = with_items();
  EXPECT_EQ(dry_run_text({"job", "orders", "A-1", SLUICE_STORE_DYNAMODB, true, outcome}),
            "message A-1 of orders, job job: done\n"
            "one transaction in DynamoDB, 7 of at most 100 actions:\n"
            "   1  send to receipts: a\\u001b[2J\n"
            "       id: r\n"
            "       group: g\n"
            "       delay: 3s\n"
            "   2  Update accounts {\"id\":{\"S\":\"a\"}}  -- debit, or reject\n"
            "       UpdateExpression: SET #b = #b - :n\n"
            "       ConditionExpression: #b >= :n\n"
            "       #b = balance\n"
            "       Values: {\":n\":{\"N\":\"10\"}}\n"
            "   3  Put log {\"id\":{\"S\":\"x\"}}\n"
            "   4  Delete log {\"id\":{\"S\":\"y\"}}\n"
            "   5  ConditionCheck log {\"id\":{\"S\":\"z\"}}\n"
            "       ConditionExpression: attribute_exists(id)\n"
            "   6  remember the message's idempotency key with the result: moved\n"
            "   7  remove message A-1 from orders, if it is still ours\n");
}

TEST(TransactionReport, ADeduplicationIdIsAnActionOfItsOwn) {
  auto effects = std::make_shared<Effects>();
  effects->messages.push_back({"receipts", {.id = "r", .body = "x", .dedup_id = "order-7"}});
  const plugin::Outcome outcome{plugin::OutcomeStatus::done, {}, {}, effects};
  EXPECT_EQ(
      dry_run_text({"job", "orders", "A-1", SLUICE_STORE_DYNAMODB, false, outcome}),
      "message A-1 of orders, job job: done\n"
      "one transaction in DynamoDB, 3 of at most 100 actions:\n"
      "   1  send to receipts: x\n"
      "       id: r\n"
      "       dedup id: order-7\n"
      "   2  remember the deduplication id order-7 in receipts; where it is remembered already, the message is not "
      "stored\n"
      "   3  remove message A-1 from orders, if it is still ours\n");
}

TEST(TransactionReport, AnOutboxHasNoTransaction) {
  auto effects = std::make_shared<Effects>();
  effects->messages.push_back({"mail", {.id = "r", .body = "x"}});
  const plugin::Outcome outcome{plugin::OutcomeStatus::done, {}, {}, effects};
  EXPECT_EQ(dry_run_text({"relay", "outbox:orders", "17", SLUICE_STORE_NONE, false, outcome}),
            "message 17 of outbox:orders, job relay: done\n"
            "one after the other, at least once, 2 of at most 100 actions:\n"
            "   1  send to mail: x\n"
            "       id: r\n"
            "   2  mark row 17 of outbox:orders as sent, if it is still ours\n");
  config::HostConfig host;
  host.queues["mail"].store = "cloud";
  EXPECT_EQ(refused_sends(host, nullptr, "outbox:orders", outcome), "") << "it may go to any store";
  EXPECT_NE(refused_sends(host, nullptr, "orders", outcome), "");
}

TEST(TransactionReport, WhatTheStoreWouldRefuseIsSaid) {
  auto effects = std::make_shared<Effects>();
  effects->messages.push_back({"receipts", {.id = "r", .body = "x"}});
  const plugin::Outcome outcome{plugin::OutcomeStatus::done, {}, {}, effects};
  const DryRun run{
      "job", "orders", "A-1", SLUICE_STORE_SQLITE, false, outcome, "message r to queue receipts: it lies elsewhere"};
  EXPECT_NE(dry_run_text(run).find("it would be refused: message r to queue receipts: it lies elsewhere\n"),
            std::string::npos);
  JsonWriter json(JsonWriter::Layout::compact);
  write_dry_run(run, json);
  EXPECT_NE(json.take_text().find("\"refused\":\"message r to queue receipts: it lies elsewhere\""), std::string::npos);
}

TEST(TransactionReport, JsonHasThemAsTransactItemsHas) {
  const plugin::Outcome outcome = with_items();
  JsonWriter json(JsonWriter::Layout::compact);
  write_dry_run({"job", "orders", "A-1", SLUICE_STORE_DYNAMODB, true, outcome}, json);
  const std::string text = json.take_text();
  EXPECT_NE(
      text.find(R"({"label":"debit","on_refusal":"reject","Update":{"TableName":"accounts","Key":{"id":{"S":"a"}},)"
                R"("UpdateExpression":"SET #b = #b - :n","ConditionExpression":"#b >= :n",)"
                R"("ExpressionAttributeNames":{"#b":"balance"},"ExpressionAttributeValues":{":n":{"N":"10"}}}})"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("Put":{"TableName":"log","Item":{"id":{"S":"x"}}})"), std::string::npos);
  EXPECT_NE(text.find(R"("ConditionCheck":{"TableName":"log","Key":{"id":{"S":"z"}},)"), std::string::npos);
  EXPECT_NE(text.find(R"("remembers_key":true,"result":"moved","remove":"A-1")"), std::string::npos) << text;
}

TEST(TransactionReport, ANumberThatJsonHasNotIsAText) {
  auto effects = std::make_shared<Effects>();
  effects->writes.push_back({queue::SqlWrite{"INSERT INTO t VALUES (?, ?)", {1.5, -HUGE_VAL}, {}}, ""});
  const plugin::Outcome outcome{plugin::OutcomeStatus::done, {}, {}, effects};
  JsonWriter json(JsonWriter::Layout::compact);
  write_dry_run({"job", "orders", "A-1", SLUICE_STORE_SQLITE, false, outcome}, json);
  const std::string text = json.take_text();
  EXPECT_NE(text.find(R"("parameters":[1.5,"-inf"])"), std::string::npos) << text;
}

TEST(TransactionReport, AnOutcomeThatCommitsNothingSaysSo) {
  const plugin::Outcome outcome{plugin::OutcomeStatus::snooze, std::chrono::seconds(5), "later"};
  EXPECT_EQ(dry_run_text({"job", "orders", "A-1", SLUICE_STORE_SQLITE, false, outcome}),
            "message A-1 of orders, job job: snooze after 5s: later\nnothing would be committed with it\n");
}

}  // namespace
}  // namespace sluice::cli
