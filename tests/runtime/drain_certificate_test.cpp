#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "host/runtime/run.hpp"

namespace sluice::runtime {
namespace {

DrainCertificate two_jobs() {
  DrainCertificate certificate;
  work::LedgerSnapshot orders;
  orders.claimed = 9;
  orders.done = 6;
  orders.retried = 1;
  orders.rejected = 2;
  work::LedgerSnapshot mails;
  mails.claimed = 3;
  mails.released = 2;
  mails.stranded = 1;
  certificate.jobs = {{"orders", orders}, {"mails", mails}};
  certificate.took = std::chrono::milliseconds(1234);
  certificate.clean = false;
  return certificate;
}

std::filesystem::path temporary(const std::string& name) {
  return std::filesystem::temp_directory_path() / ("sluice-certificate-" + std::to_string(getpid()) + "-" + name);
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(DrainCertificate, IsOneLineThatAddsUp) {
  const std::string text = two_jobs().text();
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(text,
            "drain certificate: claimed 12 = 6 done + 1 retried + 0 snoozed + 2 rejected + 0 discarded + 2 released + "
            "0 lost, "
            "stranded 1; drained in 1.2 s, NOT clean; mails: claimed 3 = 2 released, stranded 1; "
            "orders: claimed 9 = 6 done + 1 retried + 2 rejected, stranded 0");
}

TEST(DrainCertificate, SaysWhyItIsNotClean) {
  DrainCertificate certificate = two_jobs();
  certificate.left_behind = {"job mails: message \"a\" was taken from its handler",
                             "job mails: 1 message stays claimed"};
  EXPECT_NE(certificate.text().find("s, NOT clean (job mails: message \"a\" was taken from its handler, job mails: 1 "
                                    "message stays claimed); mails:"),
            std::string::npos)
      << certificate.text();
  const auto json = boost::json::parse(certificate.json()).as_object();
  EXPECT_EQ(json.at("left_behind").at(1).as_string(), "job mails: 1 message stays claimed");
  certificate.clean = true;
  EXPECT_FALSE(boost::json::parse(certificate.json()).as_object().contains("left_behind"));
}

TEST(DrainCertificate, SaysWhatDynamoDbCost) {
  DrainCertificate certificate;
  certificate.jobs["a"].claimed = 100;
  certificate.jobs["a"].done = 100;
  certificate.dynamodb = cost::Spent{12, 11.5, 400};
  EXPECT_NE(certificate.text().find("DynamoDB: 12 requests, 11.5 RCU, 400.0 WCU (0.120, 0.115 and 4.00 a claim)"),
            std::string::npos)
      << certificate.text();
  certificate.jobs.clear();
  EXPECT_EQ(certificate.text().find("a claim"), std::string::npos) << "nothing to divide by";
}

TEST(DrainCertificate, SaysWhoSpentItAndForWhom) {
  DrainCertificate certificate;
  certificate.dynamodb = cost::Spent{12, 11.5, 400};
  cost::CostView view;
  view.attribute = "tenant";
  view.rows = {{"orders", std::string(cost::kShared), {{2, 1.5, 0}, 0, 0}, {}},
               {"orders", "billing", {{10, 10, 400}, 100, 100}, {}}};
  view.values.values = {{"acme", {{5, 5, 300}, 75, 75}}};
  view.values.other = {{5, 5, 60}, 20, 20};
  view.values.gone = {{0, 0, 40}, 5, 5};
  certificate.cost = BookedCost{view, cost::Prices()};
  EXPECT_NE(
      certificate.text().find("; cost: $0.00025 by prices of 2026-11-01; (shared) on orders: 2 requests, 1.5 RCU, "
                              "0.0 WCU, $0.00000019; billing on orders: 10 requests, 10.0 RCU, 400.0 WCU, "
                              "$0.00025 ($0.0000025 a message); tenant acme: 5 requests, 5.0 RCU, 300.0 WCU, "
                              "$0.00019 ($0.0000025 a message); tenant (other): 5 requests, 5.0 RCU, 100.0 WCU"),
      std::string::npos)
      << certificate.text();
  const auto json = boost::json::parse(certificate.json()).as_object().at("cost").as_object();
  EXPECT_EQ(json.at("as_of").as_string(), "2026-11-01");
  EXPECT_EQ(json.at("jobs").as_array().size(), 2U);
  EXPECT_EQ(json.at("jobs").at(1).at("write_units").to_number<double>(), 400);
  EXPECT_EQ(json.at("values").at(1).at("value").as_string(), "(other)");
  EXPECT_EQ(json.at("values").at(1).at("write_units").to_number<double>(), 100);
}

TEST(DrainCertificate, JsonHasTheShapeThatScriptsRelyOn) {
  const auto json = boost::json::parse(two_jobs().json()).as_object();
  EXPECT_EQ(json.at("total").at("claimed").as_int64(), 12);
  EXPECT_EQ(json.at("total").at("stranded").as_int64(), 1);
  EXPECT_EQ(json.at("jobs").at("orders").at("done").as_int64(), 6);
  EXPECT_EQ(json.at("jobs").at("mails").at("released").as_int64(), 2);
  EXPECT_DOUBLE_EQ(json.at("seconds").as_double(), 1.234);
  EXPECT_FALSE(json.at("clean").as_bool());
  EXPECT_FALSE(json.contains("dynamodb"));
}

TEST(DrainReportFile, ReplacesWhatWasThere) {
  const auto path = temporary("replaces");
  std::ofstream(path) << std::string(100'000, 'x');
  {
    auto file = DrainReportFile::open(path.string());
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE(file->write(two_jobs()).has_value());
  }
  EXPECT_EQ(content(path), two_jobs().json());
  std::filesystem::remove(path);
}

TEST(DrainReportFile, RefusesAPlaceThatCannotBeWrittenBeforeAnythingRuns) {
  for (const char* path : {"/nonexistent/folder/report.json", "/proc"}) {
    const auto file = DrainReportFile::open(path);
    ASSERT_FALSE(file.has_value()) << path;
    EXPECT_EQ(file.error().code(), ErrorCode::invalid);
    EXPECT_NE(file.error().message().find(path), std::string::npos);
    EXPECT_EQ(file.error().message().find('\n'), std::string::npos);
  }
}

TEST(DrainReportFile, WithoutAPathWritesNothing) {
  auto file = DrainReportFile::open("");
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->write(two_jobs()).has_value());
}

}  // namespace
}  // namespace sluice::runtime
