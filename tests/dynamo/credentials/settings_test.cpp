#include "dynamo/settings.hpp"

#include "tests/dynamo/credentials/aws_fixture.hpp"

namespace sluice::dynamo {
namespace {

using testing::HasSubstr;

class SettingsTest : public AwsFixture {
 protected:
  EndpointSettings resolved() {
    auto settings = resolve_settings(environment());
    EXPECT_TRUE(settings) << settings.error().message;
    return settings ? *settings : EndpointSettings{};
  }
};

TEST_F(SettingsTest, DefaultsWithoutAnything) {
  const auto settings = resolved();
  EXPECT_EQ(settings.region, "");
  EXPECT_EQ(settings.endpoint, "");
  EXPECT_FALSE(settings.use_fips);
  EXPECT_FALSE(settings.use_dual_stack);
  EXPECT_EQ(settings.account_id_endpoint_mode, "preferred");
}

TEST_F(SettingsTest, TakeTheRegionFromTheNearestPlace) {
  config("[default]\nregion = from-default\n[profile dev]\nregion = from-dev\n");
  EXPECT_EQ(resolved().region, "from-default");
  variables["AWS_PROFILE"] = "dev";
  EXPECT_EQ(resolved().region, "from-dev");
  variables["AWS_DEFAULT_REGION"] = "from-default-variable";
  EXPECT_EQ(resolved().region, "from-default-variable");
  variables["AWS_REGION"] = "from-variable";
  EXPECT_EQ(resolved().region, "from-variable");
  variables["AWS_REGION"] = "";  // empty counts as not set
  EXPECT_EQ(resolved().region, "from-default-variable");
}

TEST_F(SettingsTest, TakeTheEndpointFromTheNearestPlace) {
  config(
      "[default]\nservices = s\nendpoint_url = http://profile\n[services s]\ndynamodb =\n  endpoint_url = "
      "http://services\n");
  EXPECT_EQ(resolved().endpoint, "http://services");
  variables["AWS_ENDPOINT_URL"] = "http://all";
  EXPECT_EQ(resolved().endpoint, "http://all");
  variables["AWS_ENDPOINT_URL_DYNAMODB"] = "http://dynamodb";
  EXPECT_EQ(resolved().endpoint, "http://dynamodb");
  variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "TRUE";
  EXPECT_EQ(resolved().endpoint, "");
  variables.clear();
  config("[default]\nservices = missing\nendpoint_url = http://profile\n");
  EXPECT_EQ(resolved().endpoint, "http://profile");
}

TEST_F(SettingsTest, ReadTheEndpointVariants) {
  config("[default]\nuse_fips_endpoint = true\nuse_dualstack_endpoint = True\naccount_id_endpoint_mode = Required\n");
  EXPECT_TRUE(resolved().use_fips);
  EXPECT_TRUE(resolved().use_dual_stack);
  EXPECT_EQ(resolved().account_id_endpoint_mode, "required");
  variables = {{"AWS_USE_FIPS_ENDPOINT", "false"}, {"AWS_ACCOUNT_ID_ENDPOINT_MODE", "disabled"}};
  EXPECT_FALSE(resolved().use_fips);
  EXPECT_EQ(resolved().account_id_endpoint_mode, "disabled");
}

TEST_F(SettingsTest, FindTheFilesThatVariablesName) {
  write("other", "[default]\nregion = elsewhere\n");
  variables["AWS_CONFIG_FILE"] = "~/other";
  EXPECT_EQ(resolved().region, "elsewhere");
  variables["AWS_CONFIG_FILE"] = (home / "not-there").string();
  EXPECT_EQ(resolved().region, "");
}

TEST_F(SettingsTest, SayWhatIsWrongAndWhere) {
  const auto failure = [&] {
    const auto settings = resolve_settings(environment());
    return settings ? std::string() : settings.error().message;
  };
  variables = {{"AWS_USE_FIPS_ENDPOINT", "yes"}};
  EXPECT_EQ(failure(), "AWS_USE_FIPS_ENDPOINT must be true or false, not \"yes\"");
  variables = {{"AWS_ACCOUNT_ID_ENDPOINT_MODE", "maybe"}};
  EXPECT_THAT(failure(), HasSubstr("must be preferred, disabled or required"));
  variables = {{"AWS_PROFILE", "nobody"}};
  EXPECT_THAT(failure(), HasSubstr("AWS_PROFILE names nobody"));
  variables.clear();
  config("[default]\nuse_dualstack_endpoint = 1\n");
  EXPECT_THAT(failure(), HasSubstr("use_dualstack_endpoint of profile default must be true or false"));
  config("broken");
  EXPECT_THAT(failure(), HasSubstr("config:1: "));
}

}  // namespace
}  // namespace sluice::dynamo
