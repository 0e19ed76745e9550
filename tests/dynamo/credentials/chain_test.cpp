#include "dynamo/credentials/chain.hpp"

#include "dynamo/credentials/sources.hpp"
#include "tests/dynamo/credentials/aws_fixture.hpp"

namespace sluice::dynamo {
namespace {

using test::header_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ChainTest : public AwsFixture {};

TEST_F(ChainTest, TakesTheEnvironmentFirst) {
  shared_credentials("[default]\naws_access_key_id=file\naws_secret_access_key=s\n");
  variables = {{"AWS_ACCESS_KEY_ID", "env"},
               {"AWS_SECRET_ACCESS_KEY", "s"},
               {"AWS_SESSION_TOKEN", "t"},
               {"AWS_ACCOUNT_ID", "123456789012"},
               {"AWS_CREDENTIAL_EXPIRATION", "2026-01-02T04:00:00Z"}};
  const auto found = look_up();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->access_key_id, "env");
  EXPECT_EQ(found->session_token, "t");
  EXPECT_EQ(found->account_id, "123456789012");
  EXPECT_TRUE(found->expires_at.has_value());
  EXPECT_EQ(found->source, "environment");
}

TEST_F(ChainTest, RefusesHalfAPairOfKeys) {
  variables = {{"AWS_ACCESS_KEY_ID", "env"}};
  EXPECT_THAT(failure(), HasSubstr("AWS_SECRET_ACCESS_KEY is not"));
  variables = {{"AWS_SECRET_ACCESS_KEY", "hidden"}};
  EXPECT_THAT(failure(), AllOf(HasSubstr("AWS_ACCESS_KEY_ID is not"), Not(HasSubstr("hidden"))));
  variables.clear();
  shared_credentials("[default]\naws_access_key_id=file\n");
  EXPECT_THAT(failure(), HasSubstr("only one of"));
}

TEST_F(ChainTest, ReadsTheSharedFiles) {
  shared_credentials(
      "[default]\naws_access_key_id=d\naws_secret_access_key=s\n[dev]\naws_access_key_id=v\naws_secret_access_key=s\n");
  EXPECT_EQ(look_up()->access_key_id, "d");
  variables["AWS_PROFILE"] = "dev";
  EXPECT_EQ(look_up()->access_key_id, "v");
  EXPECT_EQ(look_up()->source, "profile dev");
  write("mine", "[dev]\naws_access_key_id=m\naws_secret_access_key=s\n");
  variables["AWS_SHARED_CREDENTIALS_FILE"] = "~/mine";
  EXPECT_EQ(look_up()->access_key_id, "m");
  EXPECT_TRUE(transport.requests().empty());
}

TEST_F(ChainTest, SaysWhatWasTriedWhenThereIsNothing) {
  variables["AWS_EC2_METADATA_DISABLED"] = "true";
  EXPECT_THAT(failure(), AllOf(HasSubstr("no AWS credentials found; set AWS_ACCESS_KEY_ID"), HasSubstr("aws configure"),
                               HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE is not set"), HasSubstr("profile default"),
                               HasSubstr("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
                               HasSubstr("AWS_EC2_METADATA_DISABLED is true"), Not(HasSubstr("\n"))));
  EXPECT_EQ(look_up().error().kind, ErrorKind::no_credentials);
  EXPECT_TRUE(transport.requests().empty());
}

TEST_F(ChainTest, RefusesAProfileThatIsNotThere) {
  variables["AWS_PROFILE"] = "nobody";
  EXPECT_THAT(failure(), HasSubstr("AWS_PROFILE names nobody"));
}

TEST_F(ChainTest, NamesAFileThatCannotBeRead) {
  std::filesystem::create_directories(home / ".aws" / "config");
  EXPECT_THAT(failure(), AllOf(HasSubstr((home / ".aws" / "config").string()), HasSubstr("it is a folder")));
}

TEST_F(ChainTest, AssumesTheRoleOfAProfile) {
  config(
      "[profile role]\nrole_arn=arn:aws:iam::1:role/w\nsource_profile=base\nexternal_id=x y\nduration_seconds=900\n"
      "role_session_name=me\nregion=eu-west-1\n");
  shared_credentials("[base]\naws_access_key_id=BASE\naws_secret_access_key=s\n");
  variables["AWS_PROFILE"] = "role";
  transport.answer(200, sts_answer("AssumeRole", "ASIA"));
  const auto found = look_up();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->access_key_id, "ASIA");
  EXPECT_EQ(found->secret_access_key, "s&k");
  EXPECT_EQ(found->session_token, "tok==");
  EXPECT_EQ(found->account_id, "123456789012");
  EXPECT_EQ(*found->expires_at, clock.wall_now() + std::chrono::hours(1));
  const auto request = transport.requests().at(0);
  EXPECT_EQ(request.url, "https://sts.eu-west-1.amazonaws.com");
  EXPECT_EQ(request.body,
            "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fw&RoleSessionName=me"
            "&ExternalId=x%20y&DurationSeconds=900");
  EXPECT_THAT(header_of(request, "authorization"), HasSubstr("Credential=BASE/20260102/eu-west-1/sts/aws4_request"));
}

TEST_F(ChainTest, FollowsAChainOfRoles) {
  config(
      "[default]\nrole_arn=arn:1\nsource_profile=middle\n[profile "
      "middle]\nrole_arn=arn:2\ncredential_source=Environment\n");
  variables = {{"AWS_PROFILE", "default"}};
  EXPECT_THAT(failure(), HasSubstr("credential_source Environment has no credentials"));
  config(
      "[default]\nrole_arn=arn:1\nsource_profile=middle\n[profile middle]\nrole_arn=arn:2\nsource_profile=base\n"
      "[profile base]\naws_access_key_id=BASE\naws_secret_access_key=s\n");
  transport.answer(200, sts_answer("AssumeRole", "SECOND"));
  transport.answer(200, sts_answer("AssumeRole", "FIRST"));
  const auto found = look_up();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->access_key_id, "FIRST");
  EXPECT_THAT(transport.requests().at(0).body, HasSubstr("RoleArn=arn%3A2"));
  EXPECT_THAT(header_of(transport.requests().at(1), "authorization"), HasSubstr("Credential=SECOND/"));
  EXPECT_EQ(transport.requests().at(1).url, "https://sts.us-east-1.amazonaws.com");
}

TEST_F(ChainTest, AssumesARoleInTheRegionOfWhoeverWantsItUnlessAnotherIsNamed) {
  config("[default]\nrole_arn=arn:1\nsource_profile=base\n");
  shared_credentials("[base]\naws_access_key_id=BASE\naws_secret_access_key=s\n");
  region = "cn-north-1";  // which another partition knows nothing of
  transport.answer(200, sts_answer("AssumeRole", "ROLE"));
  ASSERT_TRUE(look_up());
  EXPECT_EQ(url_of_request(0), "https://sts.cn-north-1.amazonaws.com.cn");
  variables["AWS_REGION"] = "eu-west-1";
  transport.answer(200, sts_answer("AssumeRole", "ROLE"));
  ASSERT_TRUE(look_up());
  EXPECT_EQ(url_of_request(1), "https://sts.eu-west-1.amazonaws.com");
}

TEST_F(ChainTest, LetsAProfileWithKeysNameItself) {
  config("[default]\nrole_arn=arn:1\nsource_profile=default\naws_access_key_id=SELF\naws_secret_access_key=s\n");
  transport.answer(200, sts_answer("AssumeRole", "ROLE"));
  EXPECT_EQ(look_up()->access_key_id, "ROLE");
  EXPECT_THAT(header_of(transport.requests().at(0), "authorization"), HasSubstr("Credential=SELF/"));
}

TEST_F(ChainTest, RefusesRolesThatCannotBeAssumed) {
  const std::pair<const char*, const char*> cases[] = {
      {"[default]\nrole_arn=a\n", "needs a source_profile or a credential_source"},
      {"[default]\nrole_arn=a\nsource_profile=b\ncredential_source=Environment\n", "keep one of them"},
      {"[default]\nrole_arn=a\nsource_profile=b\n", "source_profile b does not exist"},
      {"[default]\nrole_arn=a\nsource_profile=default\n", "leads back to itself"},
      {"[default]\nrole_arn=a\nsource_profile=b\n[profile b]\nrole_arn=c\nsource_profile=default\n",
       "leads back to itself"},
      {"[default]\nrole_arn=a\nsource_profile=b\n[profile b]\nregion=x\n", "b has no credentials"},
      {"[default]\nrole_arn=a\ncredential_source=Magic\n", "credential_source Magic is not known"},
      {"[default]\nrole_arn=a\nmfa_serial=m\nsource_profile=default\n", "mfa_serial"},
      {"[default]\nrole_arn=a\nsource_profile=default\naws_access_key_id=k\naws_secret_access_key=s\nduration_seconds="
       "1x\n",
       "duration_seconds must be"},
  };
  for (const auto& [text, message] : cases) {
    config(text);
    EXPECT_THAT(failure(), HasSubstr(message)) << text;
  }
  EXPECT_TRUE(transport.requests().empty());
}

TEST_F(ChainTest, PassesOnWhatStsSays) {
  config("[default]\nrole_arn=arn:1\nsource_profile=default\naws_access_key_id=k\naws_secret_access_key=s\n");
  transport.answer(403,
                   "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not\nyou</Message>"
                   "</Error></ErrorResponse>");
  EXPECT_THAT(failure(),
              AllOf(HasSubstr("profile default, role arn:1: STS refused AssumeRole (HTTP 403): AccessDenied: not"),
                    Not(HasSubstr("\n"))));
  transport.answer(Error(ErrorKind::transport, "cannot connect"));
  transport.answer(200, sts_answer("AssumeRole", "K"));
  EXPECT_TRUE(look_up());  // asked a second time
}

TEST_F(ChainTest, AssumesARoleByAwsTimeWhereThisMachinesClockIsWrong) {
  config("[default]\nrole_arn=arn:1\nsource_profile=default\naws_access_key_id=k\naws_secret_access_key=s\n");
  const std::string refusal =
      "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>Signature not yet current</Message></Error>"
      "</ErrorResponse>";
  const Headers two_hours_before{{"Date", "Fri, 02 Jan 2026 01:04:05 GMT"}};
  transport.answer(403, refusal, two_hours_before);
  transport.answer(200, sts_answer("AssumeRole", "K"));  // expires an hour after this machine's time
  const auto found = look_up();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->expires_at, clock.wall_now() + std::chrono::hours(3)) << "as this machine's clock will show it";
  EXPECT_EQ(header_of(transport.requests().at(0), "x-amz-date"), "20260102T030405Z");
  EXPECT_EQ(header_of(transport.requests().at(1), "x-amz-date"), "20260102T010405Z");
  transport.answer(403, refusal, two_hours_before);
  transport.answer(403, refusal, two_hours_before);
  EXPECT_THAT(failure(), HasSubstr("SignatureDoesNotMatch"));
  EXPECT_EQ(transport.requests().size(), 4U) << "once more, and not again";
}

TEST(Sts, ReadsOnlyWholeAnswers) {
  const std::string good = sts_answer("AssumeRole", "K");
  EXPECT_TRUE(parse_sts_answer(good, "x"));
  for (std::size_t length = 0; length < good.find("</Credentials>"); length += 7) {
    EXPECT_FALSE(parse_sts_answer(std::string_view(good).substr(0, length), "x")) << length;
  }
  for (const char* xml :
       {"", "<Credentials></Credentials>", "{}", "<Credentials><AccessKeyId><b/></AccessKeyId></Credentials>"}) {
    EXPECT_FALSE(parse_sts_answer(xml, "x")) << xml;
  }
  std::string foreign = good;
  foreign.replace(foreign.find("&amp;"), 5, "&evil;");
  EXPECT_FALSE(parse_sts_answer(foreign, "x"));
}

TEST_F(ChainTest, AssumesARoleByWebIdentityAndReadsItsTokenAnew) {
  write("token", "first\n");
  variables = {{"AWS_WEB_IDENTITY_TOKEN_FILE", (home / "token").string()},
               {"AWS_ROLE_ARN", "arn:r"},
               {"AWS_ROLE_SESSION_NAME", "pod"},
               {"AWS_REGION", "cn-north-1"}};
  transport.answer(200, sts_answer("AssumeRoleWithWebIdentity", "WEB"));
  transport.answer(200, sts_answer("AssumeRoleWithWebIdentity", "WEB"));
  EXPECT_EQ(look_up()->access_key_id, "WEB");
  write("token", "second");
  EXPECT_TRUE(look_up());
  const auto requests = transport.requests();
  EXPECT_EQ(requests.at(0).url, "https://sts.cn-north-1.amazonaws.com.cn");
  EXPECT_EQ(header_of(requests.at(0), "authorization"), "");
  EXPECT_THAT(requests.at(0).body, HasSubstr("RoleSessionName=pod&WebIdentityToken=first"));
  EXPECT_THAT(requests.at(1).body, HasSubstr("WebIdentityToken=second"));
  variables.erase("AWS_ROLE_ARN");
  EXPECT_THAT(failure(), HasSubstr("AWS_ROLE_ARN is not"));
  variables["AWS_ROLE_ARN"] = "arn:r";
  std::filesystem::remove(home / "token");
  EXPECT_THAT(failure(), HasSubstr("is not there"));
}

TEST_F(ChainTest, TakesAWebIdentityFromTheProfile) {
  write("token", "t");
  config("[default]\nrole_arn=arn:p\nweb_identity_token_file=~/token\n");
  transport.answer(200, sts_answer("AssumeRoleWithWebIdentity", "WEB"));
  const auto found = look_up();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->source, HasSubstr("profile default, web identity, role arn:p"));
  config("[default]\nweb_identity_token_file=~/token\n");
  EXPECT_THAT(failure(), HasSubstr("needs a role_arn"));
}

class SsoTest : public AwsFixture {
 protected:
  void sign_in(const std::string& key_sha1, const std::string& expires) {
    write(".aws/sso/cache/" + key_sha1 + ".json", R"({"accessToken":"TOKEN","expiresAt":")" + expires + "\"}");
  }
  static constexpr const char* kSession =
      "[default]\nsso_session=corp\nsso_account_id=111122223333\nsso_role_name=dev/ops\n"
      "[sso-session corp]\nsso_region=eu-central-1\nsso_start_url=https://corp.example/start\n";
  static constexpr const char* kAnswer =
      R"({"roleCredentials":{"accessKeyId":"SSO","secretAccessKey":"s","sessionToken":"t","expiration":1767330000000}})";
};

TEST_F(SsoTest, UsesTheTokenOfASession) {
  config(kSession);
  sign_in("ee0bfd2552fbd840c02cc48b6e823320543c450f", "2026-01-02T04:00:00Z");
  transport.answer(200, kAnswer);
  const auto found = look_up();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->access_key_id, "SSO");
  EXPECT_EQ(found->account_id, "111122223333");
  EXPECT_EQ(*found->expires_at, WallTime(std::chrono::seconds(1'767'330'000)));
  const auto request = transport.requests().at(0);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.url,
            "https://portal.sso.eu-central-1.amazonaws.com/federation/credentials?role_name=dev%2Fops"
            "&account_id=111122223333");
  EXPECT_EQ(header_of(request, "x-amz-sso_bearer_token"), "TOKEN");
}

TEST_F(SsoTest, UsesTheTokenOfAProfileWithoutASession) {
  config(
      "[default]\nsso_start_url=https://corp.example/"
      "start\nsso_region=eu-central-1\nsso_account_id=1\nsso_role_name=r\n");
  sign_in("f7c9b39d0b4c7a7d82c79307585f77e1c5e74378", "2026-01-02T04:00:00UTC");
  EXPECT_THAT(failure(), HasSubstr("cannot be read"));  // a time that is none
  sign_in("f7c9b39d0b4c7a7d82c79307585f77e1c5e74378", "2026-01-02T04:00:00Z");
  transport.answer(200, kAnswer);
  EXPECT_TRUE(look_up());
}

TEST_F(SsoTest, SaysHowToSignIn) {
  config(kSession);
  EXPECT_THAT(failure(), HasSubstr("profile default is not signed in; run aws sso login --profile default"));
  sign_in("ee0bfd2552fbd840c02cc48b6e823320543c450f", "2026-01-02T03:04:05Z");
  EXPECT_THAT(failure(), HasSubstr("has expired; run aws sso login --profile default"));
  sign_in("ee0bfd2552fbd840c02cc48b6e823320543c450f", "2026-01-02T04:00:00Z");
  transport.answer(401, "{}");
  EXPECT_THAT(failure(), HasSubstr("run aws sso login"));
  transport.answer(403, "{}");
  EXPECT_THAT(failure(), HasSubstr("may you use role dev/ops"));
  config("[default]\nsso_session=gone\nsso_account_id=1\nsso_role_name=r\n");
  EXPECT_THAT(failure(), HasSubstr("no section [sso-session gone]"));
  config("[default]\nsso_start_url=u\nsso_region=evil.example/#\nsso_account_id=1\nsso_role_name=r\n");
  EXPECT_THAT(failure(), HasSubstr("not the name of a region"));
}

}  // namespace
}  // namespace sluice::dynamo
