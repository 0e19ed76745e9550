#include "tests/dynamo/credentials/aws_fixture.hpp"

namespace sluice::dynamo {
namespace {

using test::header_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kKeys =
    R"({"AccessKeyId":"BOX","SecretAccessKey":"s","Token":"t","Expiration":"2026-01-02T09:00:00Z","AccountId":"123456789012"})";

class ContainerTest : public AwsFixture {};

TEST_F(ContainerTest, AsksTheAgentOfEcs) {
  variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/credentials/x";
  transport.answer(200, kKeys);
  const auto found = look_up();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->access_key_id, "BOX");
  EXPECT_EQ(found->session_token, "t");
  EXPECT_EQ(found->account_id, "123456789012");
  EXPECT_EQ(found->source, "container");
  EXPECT_EQ(url_of_request(0), "http://169.254.170.2/v2/credentials/x");
  EXPECT_EQ(header_of(transport.requests().at(0), "authorization"), "");
}

TEST_F(ContainerTest, ReadsTheAuthorizationTokenAnewEachTime) {
  variables = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials"},
               {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", (home / "token").string()},
               {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "ignored"}};
  write("token", "first");
  transport.answer(200, kKeys);
  transport.answer(200, kKeys);
  EXPECT_TRUE(look_up());
  write("token", "second");
  EXPECT_TRUE(look_up());
  EXPECT_EQ(header_of(transport.requests().at(0), "authorization"), "first");
  EXPECT_EQ(header_of(transport.requests().at(1), "authorization"), "second");
  write("token", "secret\r\nX-Evil: 1");
  EXPECT_THAT(failure(), AllOf(HasSubstr("line break"), Not(HasSubstr("secret"))));
  std::filesystem::remove(home / "token");
  EXPECT_THAT(failure(), HasSubstr("is not there"));
}

TEST_F(ContainerTest, GoesOnlyWhereItIsSafe) {
  const std::pair<const char*, bool> cases[] = {
      {"http://localhost:1/x", true},
      {"http://127.0.0.1/x", true},
      {"http://127.9.9.9:80/x", true},
      {"http://[::1]/x", true},
      {"http://169.254.170.2/x", true},
      {"http://169.254.170.23/x", true},
      {"http://[fd00:ec2::23]/x", true},
      {"https://anywhere.example/x", true},
      {"http://anywhere.example/x", false},
      {"http://127.0.0.1.evil.example/x", false},
      {"http://localhost@evil.example/x", false},
      {"http://evil.example#localhost", false},
      {"http://169.254.169.254/x", false},
      {"ftp://localhost/x", false},
      {"localhost/x", false},
      {"http:///x", false},
      {"http://evil.example\\@localhost/x", false},
  };
  for (const auto& [url, allowed] : cases) {
    variables = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url}};
    transport.answer(404, "");
    const std::string message = failure();
    EXPECT_EQ(message.find("must be https") == std::string::npos, allowed) << url << ": " << message;
  }
}

TEST_F(ContainerTest, AsksAgainWhenTheAgentIsBusy) {
  variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/x";
  transport.answer(500, "");
  transport.answer(Error(ErrorKind::timeout, "no answer"));
  transport.answer(200, kKeys);
  EXPECT_TRUE(look_up());
  transport.answer(404, "");
  EXPECT_THAT(failure(), HasSubstr("answered HTTP 404"));
  transport.answer(200, R"({"AccessKeyId":"only-this-secret"})");
  EXPECT_THAT(failure(), AllOf(HasSubstr("no access key"), Not(HasSubstr("only-this-secret"))));
  transport.answer(200, std::string(100'000, '['));
  EXPECT_THAT(failure(), HasSubstr("cannot be used"));
}

class InstanceTest : public AwsFixture {};

TEST_F(InstanceTest, TakesTheThreeStepsOfVersionTwo) {
  transport.answer(200, "SESSION");
  transport.answer(200, "worker role\n");
  transport.answer(200, kKeys);
  const auto found = look_up();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->source, "instance role worker role");
  const auto requests = transport.requests();
  EXPECT_EQ(requests.at(0).method, "PUT");
  EXPECT_EQ(requests.at(0).url, "http://169.254.169.254/latest/api/token");
  EXPECT_EQ(header_of(requests.at(0), "x-aws-ec2-metadata-token-ttl-seconds"), "21600");
  EXPECT_EQ(header_of(requests.at(1), "x-aws-ec2-metadata-token"), "SESSION");
  EXPECT_EQ(requests.at(2).url, "http://169.254.169.254/latest/meta-data/iam/security-credentials/worker%20role");
  EXPECT_EQ(header_of(requests.at(2), "x-aws-ec2-metadata-token"), "SESSION");
}

TEST_F(InstanceTest, GivesUpAfterOneSecondOffEc2) {
  transport.answer(Error(ErrorKind::timeout, "no answer"));
  EXPECT_THAT(failure(), AllOf(HasSubstr("no AWS credentials found"), HasSubstr("no EC2 instance metadata here")));
  ASSERT_EQ(transport.requests().size(), 1U);
  EXPECT_EQ(transport.requests().at(0).connect_timeout, std::chrono::seconds(1));
  EXPECT_LE(transport.deadlines().at(0).left(clock.steady_now()), std::chrono::seconds(1));
}

TEST_F(InstanceTest, HonoursItsVariables) {
  variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://127.0.0.1:1338/";
  EXPECT_THAT(failure(), HasSubstr("no EC2 instance metadata"));
  EXPECT_EQ(url_of_request(0), "http://127.0.0.1:1338/latest/api/token");
  variables = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6"}};
  EXPECT_THAT(failure(), HasSubstr("no EC2 instance metadata"));
  EXPECT_EQ(url_of_request(1), "http://[fd00:ec2::254]/latest/api/token");
  variables = {{"AWS_EC2_METADATA_DISABLED", "True"}};
  EXPECT_THAT(failure(), HasSubstr("AWS_EC2_METADATA_DISABLED is true"));
  EXPECT_EQ(transport.requests().size(), 2U);
}

TEST_F(InstanceTest, CopesWithAnswersThatAreNone) {
  transport.answer(403, "");
  EXPECT_THAT(failure(), HasSubstr("gave no session token (HTTP 403)"));
  transport.answer(200, "evil\r\nX: 1");
  EXPECT_THAT(failure(), HasSubstr("gave no session token"));
  transport.answer(200, "T");
  transport.answer(404, "");
  EXPECT_THAT(failure(), HasSubstr("this EC2 instance has no role"));
  transport.answer(200, "T");
  transport.answer(200, "r");
  transport.answer(200, R"({"Code":"AssumeRoleUnauthorizedAccess"})");
  EXPECT_THAT(failure(), HasSubstr("no access key"));
  transport.answer(200, "T");
  transport.answer(200, "r");
  transport.answer(500, "");
  EXPECT_THAT(failure(), HasSubstr("gave no credentials for role r: HTTP 500"));
}

}  // namespace
}  // namespace sluice::dynamo
