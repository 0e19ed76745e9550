// What AWS's cases leave open.
#include "dynamo/endpoints/endpoint_rules.hpp"

#include <gtest/gtest.h>

namespace sluice::dynamo {
namespace {

TEST(Partition, ByRegion) {
  const std::pair<std::string, std::string> cases[] = {{"us-east-1", "aws"},
                                                       {"eu-central-2", "aws"},
                                                       {"cn-north-1", "aws-cn"},
                                                       {"aws-cn-global", "aws-cn"},
                                                       {"us-gov-west-1", "aws-us-gov"},
                                                       {"us-iso-west-1", "aws-iso"},
                                                       {"us-isob-east-1", "aws-iso-b"},
                                                       {"eu-isoe-west-1", "aws-iso-e"},
                                                       {"us-isof-south-1", "aws-iso-f"},
                                                       {"eusc-de-east-1", "aws-eusc"},
                                                       {"local", "aws"},
                                                       {"cn-north", "aws"},
                                                       {"cn-north-x", "aws"},
                                                       {"cn-", "aws"},
                                                       {"", "aws"},
                                                       {"us-newcontinent-99", "aws"}};
  for (const auto& [region, name] : cases) {
    EXPECT_EQ(partition_of(region).name, name) << region;
  }
}

TEST(EndpointRules, EuropeanSovereignCloud) {
  EXPECT_EQ(resolve_endpoint({.region = "eusc-de-east-1"})->url, "https://dynamodb.eusc-de-east-1.amazonaws.eu");
  EXPECT_EQ(resolve_endpoint({.region = "eusc-de-east-1", .use_dual_stack = true})->url,
            "https://dynamodb.eusc-de-east-1.api.amazonwebservices.eu");
}

TEST(EndpointRules, OtherServicesAreWhereAwsHasThem) {
  const auto url = [](const std::string& region, bool fips, bool dual_stack) {
    return service_url("sts", {.use_fips = fips, .use_dual_stack = dual_stack}, region);
  };
  EXPECT_EQ(url("eu-west-1", false, false), "https://sts.eu-west-1.amazonaws.com");
  EXPECT_EQ(url("us-east-1", true, false), "https://sts-fips.us-east-1.amazonaws.com");
  EXPECT_EQ(url("us-east-1", true, true), "https://sts-fips.us-east-1.api.aws");
  EXPECT_EQ(url("us-gov-west-1", false, false), "https://sts.us-gov-west-1.amazonaws.com");
  // There is no sts-fips nor sns-fips, but with IPv6: what is there without is FIPS.
  EXPECT_EQ(url("us-gov-west-1", true, false), "https://sts.us-gov-west-1.amazonaws.com");
  EXPECT_EQ(url("us-gov-west-1", true, true), "https://sts-fips.us-gov-west-1.api.aws");
}

TEST(EndpointRules, RegionsThatWouldForgeAHostAreRefused) {
  for (const std::string region : {"evil.com/", "us east", "a.b", "-x", "us-east-1\n", "é", "@",
                                   "a123456789012345678901234567890123456789012345678901234567890123"}) {
    const auto endpoint = resolve_endpoint({.region = region});
    ASSERT_FALSE(endpoint.has_value()) << region;
    EXPECT_NE(endpoint.error().message.find("region"), std::string::npos);
  }
}

TEST(EndpointRules, CustomEndpointsMustBeUrls) {
  for (const std::string url : {"localhost:8000", "ftp://h", "http://", "http://u:p@h", "http://h?x", "http://h h"}) {
    const auto endpoint = resolve_endpoint({.region = "us-east-1", .endpoint = url});
    ASSERT_FALSE(endpoint.has_value()) << url;
    EXPECT_EQ(endpoint.error().kind, ErrorKind::validation);
    EXPECT_NE(endpoint.error().message.find("DynamoDB endpoint"), std::string::npos);
  }
  const auto endpoint = resolve_endpoint({.region = "eu-west-1", .endpoint = "http://127.0.0.1:8000"});
  EXPECT_EQ(endpoint->url, "http://127.0.0.1:8000");
  EXPECT_EQ(endpoint->signing_region, "eu-west-1");
}

TEST(EndpointRules, UnknownModeIsRefused) {
  EXPECT_FALSE(resolve_endpoint({.region = "us-east-1", .account_id_endpoint_mode = "always"}).has_value());
}

TEST(EndpointRules, ForgedAccountIdsAreRefused) {
  const auto resolve = [](const std::string& id) {
    return resolve_endpoint({.region = "us-east-1", .account_id_endpoint_mode = "preferred"}, id);
  };
  EXPECT_EQ(resolve("111111111111")->url, "https://111111111111.ddb.us-east-1.amazonaws.com");
  for (const std::string id : {"", "evil.com/", "1.2", "a b", "@"}) {
    EXPECT_FALSE(resolve(id).has_value()) << id;
  }
}

}  // namespace
}  // namespace sluice::dynamo
