// Cases for DynamoDB's endpoint rules: ours, and AWS's own where the tree has them beside it.
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "dynamo/endpoints/endpoint_rules.hpp"

namespace sluice::dynamo {
namespace {

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> found{SLUICE_SOURCE_DIR "/tests/fixtures/endpoints.json"};
  if (std::filesystem::path theirs = SLUICE_VECTORS_DIR "/endpoints-dynamodb.json"; std::filesystem::exists(theirs)) {
    found.push_back(std::move(theirs));
  }
  return found;
}

/// Of requests that we do not make: for a table by its ARN, or of its vector search.
bool is_of_others(const boost::json::object& test) {
  const auto* parameters = test.if_contains("params");
  return parameters != nullptr &&
         (parameters->as_object().contains("ResourceArn") || parameters->as_object().contains("ResourceArnList") ||
          parameters->as_object().contains("IsSearchOperation"));
}

struct Parameters {
  EndpointSettings settings{.account_id_endpoint_mode = ""};
  std::optional<std::string> account_id;
};

Parameters parameters_of(const boost::json::object& test) {
  Parameters parameters;
  if (!test.contains("params")) {
    return parameters;
  }
  for (const auto& [key, value] : test.at("params").as_object()) {
    const auto text = [&value = value] { return std::string(value.as_string()); };
    if (key == "Region") {
      parameters.settings.region = text();
    } else if (key == "UseFIPS") {
      parameters.settings.use_fips = value.as_bool();
    } else if (key == "UseDualStack") {
      parameters.settings.use_dual_stack = value.as_bool();
    } else if (key == "Endpoint") {
      parameters.settings.endpoint = text();
    } else if (key == "AccountId") {
      parameters.account_id = text();
    } else if (key == "AccountIdEndpointMode") {
      parameters.settings.account_id_endpoint_mode = text();
    } else {
      ADD_FAILURE() << "unknown parameter " << key;
    }
  }
  return parameters;
}

void check(const boost::json::object& test) {
  const Parameters parameters = parameters_of(test);
  const Result<Endpoint> endpoint = resolve_endpoint(parameters.settings, parameters.account_id);
  const boost::json::object& expected = test.at("expect").as_object();
  if (const auto* error = expected.if_contains("error")) {
    ASSERT_FALSE(endpoint.has_value()) << endpoint->url;
    EXPECT_EQ(endpoint.error().message, std::string(error->as_string()));
    EXPECT_EQ(endpoint.error().kind, ErrorKind::validation);
    return;
  }
  ASSERT_TRUE(endpoint.has_value()) << endpoint.error().message;
  const boost::json::object& wanted = expected.at("endpoint").as_object();
  EXPECT_EQ(endpoint->url, std::string(wanted.at("url").as_string()));
  std::string signing_region = parameters.settings.region;
  if (const auto* properties = wanted.if_contains("properties")) {
    if (const auto* schemes = properties->as_object().if_contains("authSchemes")) {
      const boost::json::object& scheme = schemes->as_array().at(0).as_object();
      signing_region = std::string(scheme.at("signingRegion").as_string());
    }
  }
  EXPECT_EQ(endpoint->signing_region, signing_region);
}

class EndpointVectors : public ::testing::TestWithParam<std::filesystem::path> {};
INSTANTIATE_TEST_SUITE_P(Cases, EndpointVectors, ::testing::ValuesIn(files()),
                         [](const auto& info) { return info.index == 0 ? "Ours" : "Awss"; });

TEST_P(EndpointVectors, EveryCase) {
  std::ifstream file(GetParam());
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const boost::json::value root = boost::json::parse(text);
  const boost::json::array& cases = root.at("testCases").as_array();
  std::size_t checked = 0;
  for (const auto& test : cases) {
    if (!is_of_others(test.as_object())) {
      SCOPED_TRACE(std::string(test.at("documentation").as_string()));
      check(test.as_object());
      ++checked;
    }
  }
  EXPECT_GE(checked, 19u);
}

}  // namespace
}  // namespace sluice::dynamo
